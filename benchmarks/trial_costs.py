"""What many trials of agents take, by arithmetic: the table of docs/scale.md.

python benchmarks/trial_costs.py
"""

from typing import Final

TURNS: Final = 12
TURN_SECONDS: Final = 6.0  # of the model
OTHER_SECONDS: Final = 8.0  # of a trial: start-up, tools, reading what is left
INPUT: Final = 12_000  # tokens of a request, on average over the turns
FROM_CACHE: Final = 0.85  # of the input; the rest is written to the cache
OUTPUT: Final = 300  # tokens of a reply
AT_ONCE: Final = 8  # trials on a machine
MACHINE: Final = 0.20  # USD an hour
# USD per million tokens: input, output; written costs a quarter more, read a tenth.
PRICES: Final = ((0.1, 0.5), (2.0, 10.0))
SIZES: Final = (100, 2_500, 50_000)
MACHINES: Final = (1, 4, 32)


def seconds() -> float:
    """Of one trial."""
    return TURNS * TURN_SECONDS + OTHER_SECONDS


def dollars(price: tuple[float, float]) -> float:
    """Of one trial."""
    read, written = FROM_CACHE * INPUT, (1 - FROM_CACHE) * INPUT
    per_turn = read * price[0] * 0.1 + written * price[0] * 1.25 + OUTPUT * price[1]
    return TURNS * per_turn / 1e6


def duration(trials: int, machines: int) -> str:
    rounds = -(-trials // (machines * AT_ONCE))
    minutes = rounds * seconds() / 60
    if minutes < 90:
        return f"{minutes:.0f} min"
    return (
        f"{minutes / 60:.1f} h" if minutes < 48 * 60 else f"{minutes / 1440:.1f} days"
    )


def table() -> str:
    heads = [f"{n} machine{'s' if n > 1 else ''}" for n in MACHINES]
    heads += [f"model at ${a:.2f}/${b:.2f}" for a, b in PRICES]
    lines = [
        f"| trials | {' | '.join(heads)} | machines |",
        "|---" * (len(heads) + 2) + "|",
    ]
    for trials in SIZES:
        cells = [duration(trials, machines) for machines in MACHINES]
        cells += [f"${trials * dollars(price):,.0f}" for price in PRICES]
        hours = trials * seconds() / AT_ONCE / 3600
        lines.append(f"| {trials:,} | {' | '.join(cells)} | ${hours * MACHINE:,.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
