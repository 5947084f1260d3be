"""A docker whose images are folders and whose containers are bubblewrap's.

It does what the plugin calls it for, so a task really runs in a container: the files of
its image and no others, in a file system of its own. Builds know WORKDIR, COPY and
``RUN mkdir``.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.agents import images, task_sandbox
from pytest_upskill.agents.sandboxes import container
from pytest_upskill.agents.sandboxes.container_program import PROGRAMS, why_no_program

_PROGRAM = r"""#!/bin/bash
state=@STATE@
command=$1
shift
echo "$command $*" >> "$state/log"

image() { image="$state/images/${1//[\/:]/_}"; }

pid() {
    [[ $(< "$state/containers/$1") =~ child-pid\":\ ([0-9]+) ]] || exit 1
    pid=${BASH_REMATCH[1]}
}

case $command in
version | images | rm) ;;
image)
    image "${@: -1}"
    [ -d "$image" ] || exit 1
    [ "$2" != --format ] || echo @ARCHITECTURE@
    ;;
build)
    image "$2"
    context=$5
    mkdir -p "$image"
    while read -r word first rest; do
        case "$word $first" in
        WORKDIR*) mkdir -p "$image$first" ;;
        "RUN mkdir") mkdir -p "$image${rest#-p }" ;;
        COPY*)
            mkdir -p "$(dirname "$image$rest")"
            cp -rT "$context/$first" "$image$rest"
            ;;
        esac
    done < "$4"
    ;;
create) echo "$3" ;;
cp)
    image "${1%:*}"
    [ -d "$image${1##*:}" ] || exit 1
    tar -c -C "$(dirname "$image${1##*:}")" "$(basename "$1")"
    ;;
run)
    bwrap=(bwrap --unshare-all --uid 1000 --gid 1000 --die-with-parent --new-session)
    # With --dev there are two user namespaces, and only root could enter them.
    bwrap+=(--proc /proc --dev-bind /dev /dev --info-fd 3)
    for folder in /usr /bin /lib /lib32 /lib64 /sbin /etc; do
        if [ -L "$folder" ]; then
            bwrap+=(--symlink "$(readlink "$folder")" "$folder")
        elif [ -d "$folder" ]; then
            bwrap+=(--ro-bind "$folder" "$folder")
        fi
    done
    while [ "$1" != -c ]; do
        case $1 in
        --name) name=$2 ;;
        --tmpfs) folders+=(--size "${2##*size=}" --tmpfs "${2%%:*}") ;;
        --mount)
            source=${2#*source=} target=${2#*target=}
            mounts+=(--ro-bind "${source%%,*}" "${target%%,*}")
            ;;
        esac
        image "$1"
        shift
    done
    for folder in "$image"/*; do
        bwrap+=(--ro-bind "$folder" "/${folder##*/}")
    done
    bwrap+=("${folders[@]}" "${mounts[@]}" --remount-ro /)
    exec "${bwrap[@]}" sh "$@" 3> "$state/containers/$name"
    ;;
exec)
    workdir=/
    while :; do
        case $1 in
        --workdir) workdir=$2; shift ;;
        --user) shift ;;
        --env=*) variables+=("${1#--env=}") ;;
        -i) ;;
        *) break ;;
        esac
        shift
    done
    pid "$1"
    shift
    enter=(nsenter --target "$pid" --user --mount --pid --net --preserve-credentials)
    exec "${enter[@]}" env -i PATH=/usr/bin:/bin "${variables[@]}" setsid \
        sh -c 'cd "$0" && exec "$@"' "$workdir" "$@"
    ;;
kill)
    pid "$1"
    kill -9 "$pid"
    ;;
*)
    echo "no such command: $command" >&2
    exit 125
    ;;
esac
"""


def use_docker(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put it into the PATH; the file that logs its calls."""
    state, programs = folder / "docker-state", folder / "docker-program"
    for path in (state / "images", state / "containers", programs):
        path.mkdir(parents=True)
    program = _PROGRAM.replace("@STATE@", str(state))
    program = program.replace("@ARCHITECTURE@", images.architecture())
    (programs / "docker").write_text(program)
    (programs / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    forget_programs()
    return state / "log"


def hide_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let neither docker nor podman be found."""
    found = shutil.which

    def which(name: str, *args: Any, **options: Any) -> str | None:
        return None if name in PROGRAMS else found(name, *args, **options)

    monkeypatch.setattr(shutil, "which", which)
    forget_programs()


def forget_programs() -> None:
    """Look again for docker and podman."""
    why_no_program.cache_clear()
    task_sandbox.choose_sandbox.cache_clear()
    container._why_not.cache_clear()
