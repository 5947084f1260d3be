echo "SEALED" >> "$1"
echo "$1 is sealed"
