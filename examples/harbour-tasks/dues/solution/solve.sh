#!/bin/bash
cat > /app/dues.csv <<'END'
good,pence
wool,99
grain,28
total,127
END
