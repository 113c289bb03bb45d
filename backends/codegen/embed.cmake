# cmake -D INPUT=FILE -D OUTPUT=FILE.c -D SYMBOL=NAME [-D IS_TEMPLATE=ON] -P embed.cmake
# Writes C that defines NAME as the text of INPUT. NAME is an array of characters, because standard C guarantees string
# literals of at most 4095 bytes. Every byte is a character constant, so that bytes above 127 fit a signed char too.
# IS_TEMPLATE: INPUT is also compiled; its names begin with ngrad_, which becomes the prefix of an emitted file.
if(IS_TEMPLATE)
  file(READ ${INPUT} text)
  string(REGEX REPLACE "ngrad_(ranks|message)" "@_\\1" text "${text}")
  string(REPLACE "ngrad_" "@_leaves_" text "${text}")
  string(HEX "${text}" bytes)
else()
  file(READ ${INPUT} bytes HEX)
endif()
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE ${OUTPUT} "extern const char ${SYMBOL}[];\nconst char ${SYMBOL}[] = {\n${bytes}\n0};\n")
