// Runs ONNX models in ngrad and in ONNX Runtime, on one thread and the same data: compares the results, and times both
// in turns. NODE_PATH has the package onnxruntime-node of npm.
//
// usage: node onnxruntime.js NGRAD [--turns=N] [--seconds=X] MODEL [INPUT=1,3,224,224]... [INPUT:=16000]... [MODEL ...]
//
// An extent without a number is 1 unless the shape of its input is given. :=N gives all elements of an input, which ngrad
// reads as a constant. Prints a row a model: the least times, their
// quotient (above 1: ngrad takes less), and the difference of the results relative to ONNX Runtime's, of elements that
// are 1e-3 at least; then the geometric mean. Exits with 1 if a model fails, or its results differ by more than 1e-3.
"use strict";
const { execFileSync } = require("child_process");
const fs = require("fs");
const os = require("os");
const path = require("path");
const ort = require("onnxruntime-node");

// By ONNX Runtime's name of a type: numpy's, and the array of its elements.
const types = {
  float32: ["<f4", Float32Array], float64: ["<f8", Float64Array], int64: ["<i8", BigInt64Array],
  int32: ["<i4", Int32Array], int8: ["|i1", Int8Array], uint8: ["|u1", Uint8Array], bool: ["|b1", Uint8Array],
};

function readArguments(words) {
  const settings = { turns: 5, seconds: 0.5, models: [] };
  settings.ngrad = words.shift();
  for (const word of words) {
    const given = /^--(turns|seconds)=(.*)$/.exec(word), number = /^(.*):=(.*)$/.exec(word),
      shape = /^(.*)=([\d,]*)$/.exec(word), model = settings.models[settings.models.length - 1];
    if (given) settings[given[1]] = Number(given[2]);
    else if (number) model.numbers[number[1]] = Number(number[2]);
    else if (shape) model.shapes[shape[1]] = shape[2].split(",").filter(Boolean).map(Number);
    else settings.models.push({ file: word, shapes: {}, numbers: {} });
  }
  return settings;
}

// Small numbers that do not repeat soon; integers are 0 or 1, which most indices may be.
function fill(data, isFloat, given) {
  let state = 1;
  for (let i = 0; i < data.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const number = given !== undefined ? given : isFloat ? state / 2 ** 32 : state >>> 31;
    data[i] = data instanceof BigInt64Array ? BigInt(number) : number;
  }
}

function writeNpy(file, descr, dims, data) {
  let header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${dims.map((n) => n + ",").join(" ")}), }`;
  header = header.padEnd(Math.ceil((header.length + 11) / 64) * 64 - 11) + "\n";
  const start = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length & 255, header.length >> 8]);
  fs.writeFileSync(file, Buffer.concat([start, Buffer.from(header), Buffer.from(data.buffer)]));
}

function readNpy(file) {
  const bytes = fs.readFileSync(file), begin = 10 + bytes.readUInt16LE(8);
  const descr = /'descr': '(...?)'/.exec(bytes.toString("latin1", 10, begin))[1];
  const row = Object.values(types).find((type) => type[0] === descr);
  return row ? new row[1](bytes.buffer.slice(bytes.byteOffset + begin, bytes.byteOffset + bytes.length)) : null;
}

function makeFeeds(session, model, folder) {
  const feeds = {};
  for (const input of session.inputMetadata) {
    const dims = model.shapes[input.name] || input.shape.map((n) => (typeof n === "number" && n >= 0 ? n : 1));
    if (!(input.type in types)) throw new Error(`${input.name}: data of type ${input.type}`);
    const [descr, Kind] = types[input.type], data = new Kind(dims.reduce((a, b) => a * b, 1));
    fill(data, input.type.startsWith("float"), model.numbers[input.name]);
    writeNpy(path.join(folder, `${input.name.replace(/\//g, "%2F")}.npy`), descr, dims, data);
    feeds[input.name] = new ort.Tensor(input.type, data, dims);
  }
  return feeds;
}

// The norm of the difference, relative to the result's.
function difference(results, session, folder) {
  let worst = 0;
  for (const name of session.outputNames) {
    const file = path.join(folder, `${name.replace(/\//g, "%2F")}.npy`);
    const expected = results[name].data, got = fs.existsSync(file) ? readNpy(file) : null;
    if (!got || got.length !== expected.length) throw new Error(`${name}: another shape or type`);
    let off = 0, norm = 0;
    for (let i = 0; i < got.length; i++) {
      off += (Number(got[i]) - Number(expected[i])) ** 2;
      norm += Number(expected[i]) ** 2;
    }
    worst = Math.max(worst, Math.sqrt(off / Math.max(norm, 1e-6 * got.length, 1e-30)));
  }
  return worst;
}

async function timeRuntime(session, feeds, seconds) {
  let least = Infinity;
  for (const end = Date.now() + 1000 * seconds; Date.now() < end;) {
    const start = process.hrtime.bigint();
    await session.run(feeds);
    least = Math.min(least, Number(process.hrtime.bigint() - start) / 1e6);
  }
  return least;
}

async function measure(model, settings, folder) {
  const out = path.join(folder, "out"), data = path.join(folder, "in");
  fs.mkdirSync(data);
  const session = await ort.InferenceSession.create(model.file, { logSeverityLevel: 4, intraOpNumThreads: 1, interOpNumThreads: 1 });
  const feeds = makeFeeds(session, model, data), options = { stdio: ["ignore", "pipe", "pipe"] };
  const results = await session.run(feeds);
  const constants = Object.keys(model.numbers).map((name) => `--constant=${name}=${path.join(data, `${name}.npy`)}`);
  execFileSync(settings.ngrad, ["run", model.file, ...constants, "--in", data, "--out", out, "--threads", "1"], options);
  const row = { own: Infinity, other: Infinity, difference: difference(results, session, out) };
  for (let turn = 0; turn < settings.turns; turn++) {
    const words = ["bench", model.file, ...constants, "--in", data, "--threads", "1", "--seconds", String(settings.seconds), "--json"];
    row.own = Math.min(row.own, JSON.parse(execFileSync(settings.ngrad, words, options))[0].min_ms);
    row.other = Math.min(row.other, await timeRuntime(session, feeds, settings.seconds));
  }
  await session.release();
  return row;
}

(async () => {
  const settings = readArguments(process.argv.slice(2));
  let logs = 0, count = 0, failed = false;
  console.log("| model | ngrad, ms | ONNX Runtime, ms | quotient | difference |\n|---|---|---|---|---|");
  for (const model of settings.models) {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "ngrad-peers-"));
    const name = path.basename(model.file, ".onnx");
    try {
      const row = await measure(model, settings, folder), quotient = row.other / row.own;
      console.log(`| ${name} | ${row.own.toPrecision(3)} | ${row.other.toPrecision(3)} | ${quotient.toFixed(2)} | ${row.difference.toExponential(0)} |`);
      logs += Math.log(quotient);
      count++;
      failed ||= row.difference > 1e-3;
    } catch (error) {
      console.log(`| ${name} | ${(error.stderr ? String(error.stderr) : error.message).trim().replace(/\s+/g, " ").slice(0, 300)} | | | |`);
      failed = true;
    }
    fs.rmSync(folder, { recursive: true });
  }
  console.log(`geometric mean of ${count}: ${Math.exp(logs / count).toFixed(3)}`);
  process.exitCode = failed ? 1 : 0;
})();
