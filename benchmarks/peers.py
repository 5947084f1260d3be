"""The same calls and one check, written for other tools.

python benchmarks/peers.py pydantic-evals|inspect-ai URL SKILL_FOLDER IN_FLIGHT
"""

import os
import sys
import tempfile
from pathlib import Path

from material import MODEL, questions
from peak import note_peak


def pydantic_evals(url: str, folder: Path, in_flight: int) -> None:
    import openai
    from pydantic_evals import Case, Dataset
    from pydantic_evals.evaluators import Contains

    client = openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0)

    async def ask(question: tuple[str, str]) -> str:
        system, user = question
        completion = await client.chat.completions.create(
            model=MODEL,
            messages=[
                {"role": "system", "content": system},
                {"role": "user", "content": user},
            ],
            max_tokens=2048,
        )
        return completion.choices[0].message.content or ""

    cases = [
        Case(name=f"case {number}", inputs=question)
        for number, question in enumerate(questions(folder))
    ]
    dataset = Dataset(name="lamp", cases=cases, evaluators=[Contains(value="lamp")])
    report = dataset.evaluate_sync(ask, max_concurrency=in_flight, progress=False)
    assert len(report.cases) == len(cases)
    assert all(one.value for case in report.cases for one in case.assertions.values())


def inspect_ai(url: str, folder: Path, in_flight: int) -> None:
    os.environ.setdefault("OPENAI_API_KEY", "none")
    import inspect_ai as inspect
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate

    samples = [
        Sample(
            input=[ChatMessageSystem(content=system), ChatMessageUser(content=user)],
            target="lamp",
        )
        for system, user in questions(folder)
    ]
    model = get_model(f"openai/{MODEL}", base_url=url, responses_api=False)
    task = inspect.Task(dataset=samples, solver=generate(), scorer=includes())
    how = {"max_connections": in_flight, "max_samples": in_flight, "max_tokens": 2048}
    with tempfile.TemporaryDirectory() as logs:
        [log] = inspect.eval(task, model=model, log_dir=logs, display="none", **how)
    assert log.status == "success"
    assert log.results.scores[0].metrics["accuracy"].value == 1


WORK = {"pydantic-evals": pydantic_evals, "inspect-ai": inspect_ai}

if __name__ == "__main__":
    WORK[sys.argv[1]](sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    note_peak("main")
