# cmake -D INPUT=FILE -D OUTPUT=FILE.c -D SYMBOL=NAME -P embed.cmake
# Writes C that defines NAME as the text of INPUT. An array of characters, because standard C promises string literals
# of no more than 4095 bytes; every byte is an escape, so that one above 127 fits a char of either signedness.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE ${OUTPUT} "extern const char ${SYMBOL}[];\nconst char ${SYMBOL}[] = {\n${bytes}\n0};\n")
