#!/bin/sh
# Stands in for epitome: puts a stub in place of the output of one command, and takes it back.
set -eu
verb=$1
file=$2
case $verb in
compact)
    cp "$file" "$EPITOME_HOME/original"
    stub='"[epitome k0000000: by hand]"'
    sed -E "s/\"(Error: )?(Exit code 3..)?replay 2026[^\"]*\"/$stub/g" "$EPITOME_HOME/original" \
        > "$EPITOME_HOME/compacted"
    cat "$EPITOME_HOME/compacted" > "$file"
    echo '{"by":"hand"}'
    ;;
restore)
    size=$(wc -c < "$EPITOME_HOME/compacted")
    tail -c "+$((size + 1))" "$file" > "$EPITOME_HOME/appended"
    cat "$EPITOME_HOME/original" "$EPITOME_HOME/appended" > "$file"
    ;;
*) exit 2 ;;
esac
