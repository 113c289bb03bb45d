// Runs the cases of ngrad_convert_cases --out DIR in ONNX Runtime, the package onnxruntime-node of npm, and compares its
// results with the interpreter's. NODE_PATH has the package.
//
// usage: node onnxruntime.js DIR
//
// Prints a line a case: "ok NAME", "own NAME" (nodes of the domain ngrad, which it must refuse), "lacks NAME: why" (no
// kernel for an operator of a type), or "FAILED NAME: why".
"use strict";
const fs = require("fs");
const path = require("path");
const ort = require("onnxruntime-node");

// Its functions have errors of a few units in the last place, the noise of the cases of one.
const TIMES_NOISE = 4;

// Of ngrad's types: ONNX Runtime's name, and the array of their elements. Halves and bf16 are bits.
const types = {
  f64: ["float64", Float64Array], f32: ["float32", Float32Array], f16: ["float16", Uint16Array],
  s64: ["int64", BigInt64Array], s32: ["int32", Int32Array], s16: ["int16", Int16Array], s8: ["int8", Int8Array],
  u64: ["uint64", BigUint64Array], u32: ["uint32", Uint32Array], u16: ["uint16", Uint16Array], u8: ["uint8", Uint8Array],
  boolean: ["bool", Uint8Array],
};

function halfNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -24 * fraction;
}

function arrayOf(file, Kind) {
  const bytes = fs.readFileSync(file);
  return new Kind(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}

function compare(got, expected, mask, how) {
  let sum = 0;
  if (got.length !== expected.length) return `${got.length} elements, expected ${expected.length}`;
  const isFloat = how.type.startsWith("f");
  for (let i = 0; i < got.length; i++) {
    const x = expected[i], y = how.type === "f16" && typeof got[i] === "number" && got instanceof Uint16Array ? halfNumber(got[i]) : Number(got[i]);
    if (!mask[i] || x === y || (Number.isNaN(x) && Number.isNaN(y))) continue;
    if (Number.isNaN(y) && how.may_be_nan) continue;
    if (!isFloat || !Number.isFinite(x) || !Number.isFinite(y)) return `[${i}] is ${y}, expected ${x}`;
    sum += (x - y) * (x - y);
  }
  return Math.sqrt(sum) <= TIMES_NOISE * how.tolerance ? null : `${Math.sqrt(sum)} away, expected at most ${how.tolerance}`;
}

async function runCase(folder) {
  const model = path.join(folder, "model.onnx"), known = JSON.parse(fs.readFileSync(path.join(folder, "case.json")));
  if (known.is_own) return ["own"];
  if (known.has_empty) return ["empty"];
  let session;
  try {
    session = await ort.InferenceSession.create(model, { logSeverityLevel: 4, intraOpNumThreads: 1, interOpNumThreads: 1, graphOptimizationLevel: "basic" });
  } catch (error) {
    if (/Unsupported data type/.test(error.message)) return ["loaded", "its data have types that JavaScript lacks"];
    return [/NOT_IMPLEMENTED|Could not find an implementation/.test(error.message) ? "lacks" : "FAILED", error.message];
  }
  const all = [...known.inputs, ...known.outputs];
  if (all.some((tensor) => !(tensor.type in types))) return ["loaded", "its data have types that JavaScript lacks"];
  const feeds = {};
  known.inputs.forEach((input, i) => {
    const [name, Kind] = types[input.type];
    feeds[session.inputNames[i]] = new ort.Tensor(name, arrayOf(path.join(folder, `in_${i}`), Kind), input.dims);
  });
  let results;
  try {
    results = await session.run(feeds);
  } catch (error) {
    return [/NOT_IMPLEMENTED/.test(error.message) ? "lacks" : "FAILED", error.message];
  } finally {
    await session.release();
  }
  for (let i = 0; i < known.outputs.length; i++) {
    const name = session.outputNames[i], got = results[name];
    if (String(got.dims) !== String(known.outputs[i].dims)) return ["FAILED", `${name} is [${got.dims}], expected [${known.outputs[i].dims}]`];
    const why = compare(got.data, arrayOf(path.join(folder, `out_${i}`), Float64Array),
      fs.readFileSync(path.join(folder, `mask_${i}`)), known.outputs[i]);
    if (why) return ["FAILED", `${name}: ${why}`];
  }
  return ["ok"];
}

(async () => {
  for (const name of fs.readdirSync(process.argv[2]).sort()) {
    const [verdict, why] = await runCase(path.join(process.argv[2], name));
    console.log(`${verdict} ${name}${why ? ": " + why.replace(/\s+/g, " ") : ""}`);
  }
})();
