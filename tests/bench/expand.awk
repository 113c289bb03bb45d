# Writes the graphs of a table of models/bench: awk -v folder=DIR -v templates=DIR -f expand.awk FILE.table
#
# A table has comments, which open each of its graphs, and then
#   template NAME...       files of the folder `templates` without their ending: a graph for each row and template
#   each VARIABLE VALUE... a graph for each value, too (types, layouts)
#   columns VARIABLE...    what the numbers of the rows are; anything else is a row
# A template is a graph file in which @VARIABLE@ stands for a value; a line that begins with ?VALUE stands only in
# graphs in which some variable of `each` has that value. Its own comments follow the table's. The graph's name is its
# file's.

function fail(what) {
  print FILENAME ":" FNR ": " what >"/dev/stderr"
  failed = 1
  exit 1
}

function write_graph(template,   file, line, text, stands, name, v, value) {
  file = templates "/" template ".yaml.in"
  text = comment
  name = ""
  while ((getline line <file) > 0) {
    if (match(line, /^\?[a-z0-9_]+ ?/)) {
      value = substr(line, 2, RLENGTH - 1)
      sub(/ $/, "", value)
      line = substr(line, RLENGTH + 1)
      stands = 0
      for (v in each) stands = stands || values[v] == value
      if (!stands) continue
    }
    for (v in values) gsub("@" v "@", values[v], line)
    if (line ~ /@/) fail(file ": no such column: " line)
    if (line ~ /^name: /) name = substr(line, 7)
    text = text line "\n"
  }
  close(file)
  if (name == "") fail(file ": a template with a line `name: ` was expected")
  printf "%s", text >(folder "/" name ".yaml")
  close(folder "/" name ".yaml")
}

# All combinations of the values of `each`, as the digits of one number.
function write_row(   count, number, i, t, digit, options) {
  count = 1
  for (i = 1; i <= neach; i++) count *= split(each[each_name[i]], options, " ")
  for (number = 0; number < count; number++) {
    digit = number
    for (i = 1; i <= neach; i++) {
      values[each_name[i]] = options_of(each[each_name[i]], digit)
      digit = int(digit / split(each[each_name[i]], options, " "))
    }
    for (t = 1; t <= ntemplates; t++) write_graph(template_name[t])
  }
}

function options_of(list, digit,   options, n) {
  n = split(list, options, " ")
  return options[digit % n + 1]
}

/^#/ { comment = comment $0 "\n"; next }
/^$/ { next }
$1 == "template" { ntemplates = NF - 1; for (i = 2; i <= NF; i++) template_name[i - 1] = $i; next }
$1 == "each" { each_name[++neach] = $2; each[$2] = ""; for (i = 3; i <= NF; i++) each[$2] = each[$2] $i " "; next }
$1 == "columns" { ncolumns = NF - 1; for (i = 2; i <= NF; i++) column[i - 1] = $i; next }
{
  if (NF != ncolumns) fail("expected " ncolumns " columns, found " NF)
  for (i = 1; i <= NF; i++) values[column[i]] = $i
  write_row()
}
