#!/bin/sh
# Makes the manual page: what --help says of verbs and options, in mdoc(7), with what ngrad.1.in adds.
#
# usage: manual.sh ngrad.1.in NGRAD... >ngrad.1; NGRAD may be an emulator, with its arguments and the program
#
# In ngrad.1.in, a line @SYNOPSIS@, @VERBS@ or @OPTIONS@ stands for what is made. Behind a line @NOTES@ follows what the
# page says besides --help: of a verb (@ fit) or an option (@ --dim); of a verb's option, where verbs have different
# options of the name (@ --state emit).
set -eu
page=$1
shift

# Joins the lines of a verb or an option: all but the first begin far to the right.
joined() {
  awk '/^          +[^ ]/ { sub(/^ +/, ""); line = line " " $0; next } NR > 1 { print line } { line = $0 } END { print line }'
}

"$@" --help | joined | awk '$0 == "verbs:" { on = 1; next } /^$/ { on = 0 } on { print $1 }' |
  while read -r verb; do "$@" "$verb" --help </dev/null; done | joined |
  awk -v page="$page" '
    # Plain text, with options and names of files marked.
    function print_text(text,    words, n, i, word, macro, behind) {
      gsub(/\\/, "\\e", text)
      gsub(/±/, "\\(+-", text)
      n = split(text, words, " ")
      line = ""
      for (i = 1; i <= n; i++) {
        word = words[i]
        macro = word ~ /^\(?--[a-z]/ ? "Fl" : word ~ /^\(?(\/|~\/|\$?[A-Za-z_-]*\/)?[A-Za-z_-]*\.(npy|npz|yaml|idx|onnx|html|csv|md|json|svg|[ch]|pb|gz)[,;:.)]*$/ ? "Pa" : ""
        if (!macro) {
          line = line (line == "" ? "" : " ") word
          if (length(line) > 100 || (word ~ /[.:]$/ && i < n)) end_line()
          continue
        }
        print_macro(macro, word)
      }
      end_line()
    }
    function end_line() {
      if (line ~ /^[.\047]/) line = "\\&" line
      if (line != "") print line
      line = ""
    }
    function print_macro(macro, word,    before, behind) {
      before = word ~ /^\(/ ? "(" : ""
      sub(/^\(/, "", word)
      behind = word
      sub(/^.*[A-Za-z0-9]/, "", behind)
      word = substr(word, 1, length(word) - length(behind))
      if (macro == "Fl") sub(/^-/, "", word)
      end_line()
      gsub(/./, " &", behind)
      print "." macro " " (before ? "( " : "") word behind
    }
    # Begins with a capital, unless it begins with a value of the option.
    function sentence(text, may_be_value) {
      if (!may_be_value || text !~ /^[^ ]*(,| or| \(default)/) text = toupper(substr(text, 1, 1)) substr(text, 2)
      return text (text ~ /\.$/ ? "" : ".")
    }
    function print_notes(key) {
      if (key in notes) printf "%s", notes[key]
      used[key] = 1
    }
    function print_synopsis(    i, n, k, words) {
      for (i = 1; i <= nverbs; i++) {
        print ".Nm\n.Cm " verbs[i] "\n.Op Ar OPTION ..."
        n = split(operands[verbs[i]], words, " ")
        for (k = 1; k <= n; k++) {
          if (words[k] == "-o") print ".Fl o Ar " words[++k]
          else if (words[k] ~ /^\[/) print ".Op Ar " substr(words[k], 2, length(words[k]) - 2)
          else print ".Ar " (sub(/\.\.\.$/, "", words[k]) ? words[k] " ..." : words[k])
        }
      }
    }
    function print_verbs(    i, k, n, paragraphs) {
      for (i = 1; i <= nverbs; i++) {
        print ".It Cm " verbs[i]
        print_text(sentence(summary[verbs[i]]))
        n = split(details[verbs[i]], paragraphs, "\n")
        for (k = 1; k <= n; k++) {
          if (paragraphs[k] ~ /^GRAPH is a file in format/) continue # the page says so above
          if (k > 1) print ".Pp"
          print_text(paragraphs[k])
        }
        print_notes(verbs[i])
      }
    }
    function print_options(    i, k, n, name, list) {
      for (i = 1; i <= noptions; i++) order[i] = i
      for (i = 2; i <= noptions; i++) # by name, else in the order of the help
        for (k = i; k > 1 && names[order[k - 1]] > names[order[k]]; k--) { n = order[k]; order[k] = order[k - 1]; order[k - 1] = n }
      for (i = 1; i <= noptions; i++) {
        k = order[i]
        name = names[k]
        sub(/^--/, "-", name)
        print ".It Fl " (letters[k] ? letters[k] " , " : "") name arguments[k]
        list = takers[k]
        gsub(/ /, " , ", list)
        if (names[k] != "--help") print ".Pq Cm " list
        print_text(sentence(helps[k], 1))
        print_notes(names[k])
        n = split(takers[k], each, " ")
        for (n = 1; n in each; n++) if ((names[k] " " each[n]) in notes) print_notes(names[k] " " each[n])
      }
    }
    $1 == "usage:" {
      verb = $3
      verbs[++nverbs] = verb
      operands[verb] = $0
      sub(/.*\[OPTION\.\.\.\] ?/, "", operands[verb])
      part = "summary"
      next
    }
    /^$/ { if (part == "details" || part == "options" || part == "exit") part = ""; else if (part == "summary" && verb in summary) part = "details"; next }
    part == "summary" { summary[verb] = summary[verb] (summary[verb] == "" ? "" : " ") $0; next }
    $0 == "options:" { part = "options"; next }
    $0 == "exit status:" || $0 == "example:" { part = "exit"; next }
    part == "details" { # a line that had room for the next word ends a paragraph
      details[verb] = details[verb] (details[verb] == "" ? "" : ends && length(last) + length($1) < 80 ? "\n" : " ") $0
      last = $0
      ends = /\.$/
      next
    }
    part == "options" {
      rest = $0
      sub(/^ +/, "", rest)
      letter = rest ~ /^-[a-z],/ ? substr(rest, 2, 1) : ""
      sub(/^-[a-z], /, "", rest)
      name = rest
      sub(/ .*/, "", name)
      sub(/^[^ ]+/, "", rest)
      argument = ""
      if (match(rest, /^ [A-Z][A-Z,=]*( |$)/)) {
        argument = substr(rest, 2, RLENGTH - 1)
        sub(/ $/, "", argument)
        rest = substr(rest, RLENGTH + 1)
      }
      sub(/^ +/, "", rest)
      key = name SUBSEP argument SUBSEP rest
      if (!(key in number)) {
        number[key] = ++noptions
        names[noptions] = name
        letters[noptions] = letter
        helps[noptions] = rest
        gsub(/=/, " Ns = Ns Ar ", argument)
        arguments[noptions] = argument == "" ? "" : " Ar " argument
      }
      takers[number[key]] = takers[number[key]] (takers[number[key]] == "" ? "" : " ") verb
    }
    END {
      while ((getline text <page) > 0) {
        if (in_notes && text ~ /^@ /) key = substr(text, 3)
        else if (in_notes) notes[key] = notes[key] text "\n"
        else if (text == "@NOTES@") in_notes = 1
        else lines[++nlines] = text
      }
      for (i = 1; i <= nlines; i++) {
        if (lines[i] == "@SYNOPSIS@") print_synopsis()
        else if (lines[i] == "@VERBS@") print_verbs()
        else if (lines[i] == "@OPTIONS@") print_options()
        else print lines[i]
      }
      for (key in notes)
        if (!(key in used)) { printf "%s: a note on %s, which --help does not have\n", page, key >"/dev/stderr"; exit 1 }
    }'
