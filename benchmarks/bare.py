"""The yardstick: the same calls, written by hand with the openai SDK.

python benchmarks/bare.py URL SKILL_FOLDER IN_FLIGHT httpx|aiohttp
"""

import asyncio
import sys
from pathlib import Path

import openai

from material import MODEL, questions
from peak import note_peak


async def main(url: str, folder: Path, in_flight: int, transport: str) -> None:
    http_client = openai.DefaultAioHttpClient() if transport == "aiohttp" else None
    gate = asyncio.Semaphore(in_flight)

    async with openai.AsyncOpenAI(
        api_key="none", base_url=url, max_retries=0, http_client=http_client
    ) as client:

        async def ask(system: str, question: str) -> bool:
            async with gate:
                completion = await client.chat.completions.create(
                    model=MODEL,
                    messages=[
                        {"role": "system", "content": system},
                        {"role": "user", "content": question},
                    ],
                    max_tokens=2048,
                )
            return "lamp" in (completion.choices[0].message.content or "")

        calls = [ask(system, question) for system, question in questions(folder)]
        assert all(await asyncio.gather(*calls))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
    note_peak("main")
