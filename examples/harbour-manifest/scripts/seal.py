"""Seal a manifest: check its lines, and add the seal as the last one."""

import re
import sys
from pathlib import Path
from zlib import crc32


def main() -> None:
    file = Path(sys.argv[1])
    lines = file.read_text().split("\n")
    goods = [
        line.strip() for line in lines if line.strip() and not line.startswith("SEAL ")
    ]
    wrong = [line for line in goods if not re.fullmatch(r"SM-\d{3} \d+", line)]
    if wrong or goods != sorted(goods) or not goods:
        sys.exit(f"not a manifest: {wrong[0] if wrong else 'sort the lines by code'}")
    seal = f"SEAL {crc32(' / '.join(goods).encode()) % 1_000_000:06}"
    file.write_text("\n".join([*goods, seal]) + "\n")
    print(seal)


main()
