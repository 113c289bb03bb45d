# cmake -D INPUT=FILE -D OUTPUT=FILE.c -D SYMBOL=NAME -P embed.cmake
# Writes C that defines NAME as the text of INPUT. NAME is an array of characters, because standard C guarantees string
# literals of at most 4095 bytes. Every byte is a character constant, so that bytes above 127 fit a signed char too.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE ${OUTPUT} "extern const char ${SYMBOL}[];\nconst char ${SYMBOL}[] = {\n${bytes}\n0};\n")
