"""What a Dockerfile needs, and what only an image can have of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.skills.dockerfile import Recipe, copied_files, read_dockerfile

ALL = """\
FROM ubuntu:24.04
ENV DEBIAN_FRONTEND=noninteractive LAMPS="two words"
ARG WICK=3
WORKDIR /app
# the packages
RUN apt-get update && apt-get install -y --no-install-recommends \\
    python3 tmux=3.4-1 \\
    # a comment between lines
    && rm -rf /var/lib/apt/lists/*
RUN pip3 install --no-cache-dir --break-system-packages 'wax==1.2.*' oil[lamp]>=2
COPY data ./data
COPY a.csv b.csv /input/
RUN mkdir -p out/{one,two} /results && touch out/one/$WICK
CMD ["bash"]
"""


def recipe(*lines: str) -> Recipe:
    return read_dockerfile("\n".join(["FROM debian:12", "WORKDIR /app", *lines]))


def test_all_that_needs_no_image() -> None:
    whole = read_dockerfile(ALL)
    assert (whole.base, whole.workdir, whole.others) == ("ubuntu:24.04", "/app", ())
    assert dict(whole.env)["LAMPS"] == "two words"
    assert whole.packages == ("python3", "tmux")
    assert whole.python == ("wax==1.2.*", "oil[lamp]>=2")
    assert whole.folders == ("/app", "/app/out/one", "/app/out/two", "/results")
    assert whole.steps == (
        (
            "export WICK=3 LAMPS='two words'; cd /app && mkdir -p /app/out/one"
            " /app/out/two /results && touch out/one/$WICK"
        ),
    )


@pytest.mark.parametrize(
    "line",
    [
        "RUN curl -fsSL https://example.org/x.tgz | tar xz",
        "RUN git clone https://example.org/x.git",
        "RUN npm install",
        "RUN make install PREFIX=/usr/local",
        "RUN pip install -e .",
        "RUN pip install wax -c limits.txt",
        "RUN cd lamps && pip install -r wicks.txt",
        "RUN touch a & touch b",
        "RUN touch $HOME/a",
        "RUN pip install torch --index-url https://example.org/whl",
        "RUN pip install git+https://example.org/x",
        "RUN useradd lamp",
        "RUN echo 'unclosed",
        "RUN python3 -c 'import wax; wax.download()'",
        "RUN apt-get install -y ./x.deb",
        "COPY lamp.conf /etc/lamp.conf",
        "COPY --from=build /out /app/out",
        "ADD https://example.org/x /app/x",
        "ADD x.tar.gz /app",
        "ONBUILD RUN true",
    ],
)
def test_only_an_image_can_have_it(line: str) -> None:
    (other,) = recipe(line).others
    assert (other.line, other.text) == (3, line)


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("RUN bash setup.sh && rm setup.sh", "cd /app && bash setup.sh && rm setup.sh"),
        ('RUN ["touch", "a b"]', "cd /app && touch 'a b'"),
        ("RUN --mount=type=cache,target=/x touch a", "cd /app && touch a"),
        ("RUN git init . && git add -A", "cd /app && git init . && git add -A"),
        ("RUN mkdir -p /etc/lamp /usr/local/bin", ""),
        ("RUN set -e; chown -R 1000 /app", ""),
        ("RUN rm a || true", "cd /app && rm a || true"),
        ("RUN test -f a || chown 1 a", "cd /app && test -f a || true"),
        ("RUN chown 1 a && touch 'a'b", "cd /app && touch 'a'b"),
        ("RUN SEED=42 python3 gen.py", "cd /app && SEED=42 python3 gen.py"),
        ("RUN N=5; echo $N > f", "cd /app && N=5 ; echo $N > f"),
        ("RUN exit 0; touch a", "cd /app && exit 0 ; touch a"),
        ("RUN echo foo\\\nbar > f", "cd /app && echo foobar > f"),
        ("RUN\ttouch a", "cd /app && touch a"),
        ("RUN cd x && mkdir y", "cd /app && cd x && mkdir -p y"),
        ("RUN mkdir -p x/$(echo y)", "cd /app && mkdir -p -p x/$(echo y)"),
        ("RUN mkdir -m 700 s 2>/dev/null", "cd /app && mkdir -p -m 700 s 2>/dev/null"),
        (
            "RUN python3 - <<'PY'\nprint(1)\nPY",
            "cd /app && python3 - <<'PY'\nprint(1)\nPY",
        ),
    ],
)
def test_commands_that_only_change_files(line: str, step: str) -> None:
    made = recipe(line)
    assert made.others == ()
    assert "".join(made.steps) == step


@pytest.mark.parametrize(
    "line",
    [
        "RUN curl -LsSf https://astral.sh/uv/0.9.7/install.sh | sh",
        (
            "RUN apt-get install -y curl && curl -LsSf"
            " https://astral.sh/uv/0.9.7/install.sh | sh"
        ),
    ],
)
def test_uv_comes_as_a_wheel(line: str) -> None:
    assert (recipe(line).python, recipe(line).others) == (("uv==0.9.7",), ())


@pytest.mark.parametrize(
    "line",
    [
        "RUN python3 -m venv /opt/venv && /opt/venv/bin/pip install wax",
        "RUN uv venv /opt/venv && . /opt/venv/bin/activate && pip install wax",
    ],
)
def test_a_virtual_environment_is_that_of_the_sandbox(line: str) -> None:
    assert (recipe(line).python, recipe(line).steps, recipe(line).others) == (
        ("wax",),
        (),
        (),
    )


@pytest.mark.parametrize(
    "options", ["-r a.txt -r b.txt", "-ra.txt --requirement=/app/b.txt"]
)
def test_requirement_files_are_named(options: str) -> None:
    made = recipe(f"RUN pip install {options}")
    assert made.requirement_files == ("/app/a.txt", "/app/b.txt")


@pytest.mark.parametrize(
    "line",
    ['echo "a \\$N"', "echo 'a $N'", "cat <<'X'\n$N\nX", "echo $N", "python3 wicks.py"],
)
def test_variables_are_those_of_the_step(line: str) -> None:
    made = recipe("ARG W=2", "ENV N=7 HOME=/x", f"RUN {line}", "ENV N=8")
    assert made.steps == (f"export W=2 N=7; cd /app && {line}",)


def test_values_of_variables_are_used_to_see_what_a_command_does() -> None:
    made = recipe("ENV D=/data P='wax oil'", "RUN pip install $P && mkdir -p $D/x")
    assert (made.python, made.folders) == (("wax", "oil"), ("/app", "/data/x"))
    assert recipe("ENV D=/etc", "RUN touch $D/x").others


def test_values_as_docker_reads_them() -> None:
    line = 'ENV B=\'$A\' C="it\'s $A" D=a\\ b E="\\$A"'
    made = recipe("ENV A=1", line, 'ENV F "x y"', "ENV G=$B")
    values = {
        "A": "1",
        "B": "$A",
        "C": "it's 1",
        "D": "a b",
        "E": "$A",
        "F": "x y",
        "G": "$A",
    }
    assert dict(made.env) == values


def test_an_argument_before_the_first_stage_must_be_declared_in_it() -> None:
    text = "ARG A=1\nARG B=2\nFROM x\nARG B\nRUN touch f\n"
    assert read_dockerfile(text).steps == ("export B=2; touch f",)


@pytest.mark.parametrize(
    ("step", "copy", "is_safe"),
    [
        ("echo x > /app/f", "COPY f /app/f", False),
        ("rm -rf /app/*", "COPY f .", False),
        ("echo x > /data/in/f", "COPY in /data/in", False),
        ("mv f g", "COPY f /app/deep/f", False),
        ("mv f g", "COPY f /data/f", True),
        ("mkdir -p in && chmod 755 in && pip install wax", "COPY f in/f", True),
        ("chmod -R 755 /app", "COPY f f", False),
    ],
)
def test_a_copy_after_a_step_that_may_change_it(
    step: str, copy: str, is_safe: bool
) -> None:
    assert (recipe(f"RUN {step}", copy).others == ()) is is_safe


def test_only_the_last_stage_counts_with_those_it_builds_on() -> None:
    text = """\
ARG TAG=12
FROM debian:$TAG AS base
RUN apt-get install -y jq
FROM alpine AS unused
RUN apk add jq
FROM base
WORKDIR /x
"""
    last = read_dockerfile(text)
    assert (last.base, last.packages, last.workdir) == ("debian:12", ("jq",), "/x")
    assert last.others == ()


@pytest.mark.parametrize(
    ("copy", "files"),
    [
        ("COPY a.csv .", {"/app/a.csv": "a.csv"}),
        ("COPY a.csv /app", {"/app/a.csv": "a.csv"}),
        ("COPY a.csv /tmp", {"/tmp/a.csv": "a.csv"}),
        ("COPY a.csv /in/b.csv", {"/in/b.csv": "a.csv"}),
        ("COPY *.csv /in/", {"/in/a.csv": "a.csv"}),
        (
            "COPY data /in",
            {"/in/x.txt": "data/x.txt", "/in/deep/y.txt": "data/deep/y.txt"},
        ),
        ('COPY ["data/x.txt", "./"]', {"/app/x.txt": "data/x.txt"}),
        ("COPY --chown=1:1 data/deep ./d", {"/app/d/y.txt": "data/deep/y.txt"}),
        ("COPY missing /in/", {}),
    ],
)
def test_where_files_are_copied_to(copy: str, files: dict[str, str]) -> None:
    context = ["a.csv", "data/x.txt", "data/deep/y.txt"]
    copied = copied_files(recipe(copy), context)
    assert {target: source for target, (source, _) in copied.items()} == files


def test_chmod_of_a_copy() -> None:
    made = recipe("COPY --chmod=755 a.sh .\nCOPY --chmod=400 key .")
    assert copied_files(made, ["a.sh", "key"]) == {
        "/app/a.sh": ("a.sh", 0o755),
        "/app/key": ("key", 0o600),  # root could write it
    }


def test_skills_are_no_files_of_the_task() -> None:
    text = (
        "FROM x\nCOPY skills /root/.claude/skills\nCOPY ./skills/ /etc/agent/skills\n"
    )
    made = read_dockerfile(text, "skills")
    assert (made.copies, made.others) == ((), ())
    assert made.skills_at == ("/root/.claude/skills", "/etc/agent/skills")
    mixed = read_dockerfile("FROM x\nCOPY f skills /app/\n", "skills")
    assert (mixed.skills_at, [copied.source for copied in mixed.copies]) == (
        ("/app",),
        ["f"],
    )


@given(
    st.lists(
        st.sampled_from([*ALL.split("\n"), "RUN '", "COPY", "ENV", "\\", "FROM", "<<A"])
    )
)
def test_no_text_breaks_it(lines: list[str]) -> None:
    copied_files(read_dockerfile("\n".join(lines)), ["a.csv"])


@given(st.text())
def test_no_command_breaks_it(text: str) -> None:
    recipe(f"RUN {text}", f"COPY {text}", f"ENV {text}", text)


@pytest.mark.parametrize(
    "line",
    [
        'ENV A="' + "\\\\" * 50,
        "ENV " + "a" * 40_000,
        "COPY " + "${a-" * 10_000 + " b",
        "RUN " + "curl " * 8_000,
        "RUN mkdir -p /x/" + "{a,b}" * 40,
        "RUN " + "[" * 40_000,
        "\n".join(["ENV A=aaaaaaaa", *["ENV A=$A$A$A$A$A$A$A$A"] * 40]),
    ],
)
def test_a_hostile_line_does_not_take_forever(line: str) -> None:
    assert len(repr(recipe(line))) < 200_000
