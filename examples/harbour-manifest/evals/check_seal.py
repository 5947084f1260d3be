"""What the harbour office does with a manifest; the agent never sees this file."""

import sys
from pathlib import Path
from zlib import crc32

*goods, seal = Path(sys.argv[1]).read_text().split("\n")[:-1]
wanted = f"SEAL {crc32(' / '.join(goods).encode()) % 1_000_000:06}"
sys.exit(0 if seal == wanted else f"the seal is {seal!r}, not {wanted!r}")
