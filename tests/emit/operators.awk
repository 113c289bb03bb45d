# The rows of tests/unit/operator_cases.h as one graph, without their numbers.
function tensor(text) { # "type[shape] numbers" as "type: type, shape: [shape]"
  match(text, /\[[^]]*\]/)
  return "type: " substr(text, 1, RSTART - 1) ", shape: " substr(text, RSTART, RLENGTH)
}
BEGIN { FS = "\"" }
/^ *\{"/ && NF != 9 { # op, attributes, inputs, outputs
  print "operators.awk: line " FNR " is no row of four strings" >"/dev/stderr"
  exit failed = 1
}
/^ *\{"Gather/ && /"f32\[0,/ { next } # no index is right, so that a self-test has no inputs
/^ *\{"/ {
  row++
  count = $6 == "" ? 0 : split($6, part, "; ")
  names = ""
  for (i = 1; i <= count; i++) {
    names = names (i > 1 ? ", " : "") "x" row "_" i
    inputs = inputs "  - {name: x" row "_" i ", " tensor(part[i]) "}\n"
  }
  count = split($8, part, "; ")
  made = ""
  for (i = 1; i <= count; i++) {
    made = made (i > 1 ? ", " : "") "{name: y" row "_" i ", " tensor(part[i]) "}"
    outputs = outputs (outputs == "" ? "" : ", ") "y" row "_" i
  }
  nodes = nodes "  - {op: " $2 ", inputs: [" names "], outputs: [" made "], attributes: {" $4 "}}\n"
}
END {
  if (failed) exit 1
  print "format: ngrad/1\nname: operators\ninputs:\n" inputs "nodes:\n" nodes "outputs: [" outputs "]"
}
