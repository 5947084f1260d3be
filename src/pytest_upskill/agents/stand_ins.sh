#!/bin/sh
# Stands in for the programs by which verifiers download what they need. It is called by the name
# of the program, and gives what was prepared outside of the sandbox. It runs in any image.
#
# UPSKILL_WITHOUT   versions of Python that are asked for, but not there
# UPSKILL_PACKAGES  packages of the system that are there
# UPSKILL_UNMET     a file: what could not be given

name=${0##*/}
here=${0%/*}

unmet() { echo "$1" >> "${UPSKILL_UNMET:-/dev/null}"; }

real() { # run the program of this name that comes later on PATH, if there is one
    saved=$IFS
    IFS=:
    for folder in $PATH; do
        if [ "$folder" != "$here" ] && [ -x "$folder/$name" ] && [ ! -d "$folder/$name" ]; then
            IFS=$saved
            exec "$folder/$name" "$@"
        fi
    done
    IFS=$saved
}

installer() { # the script that installs uv: what is prepared, and where scripts look for it
    cat << 'END'
set -e
bin=${UV_INSTALL_DIR:-$HOME/.local/bin}
mkdir -p "$bin"
for program in uv uvx; do
    printf '#!/bin/sh\nexec "%s/%s" "$@"\n' "$UPSKILL_BIN" "$program" > "$bin/$program"
    chmod +x "$bin/$program"
done
echo "case \":\$PATH:\" in *:\"$bin\":*) ;; *) export PATH=\"\$PATH:$bin\" ;; esac" > "$bin/env"
echo "uv is prepared: $bin"
END
}

fetch() { # curl and wget
    url='' file='' next='' quiet=''
    for word in "$@"; do
        case $next in output) file=$word ;; esac
        if [ -n "$next" ]; then next=''; continue; fi
        case $name:$word in
            *:http://* | *:https://*) url=$word ;;
            curl:-o | curl:--output | wget:-O | wget:--output-document) next=output ;;
            curl:-[a-zA-Z]*o | wget:-[a-zA-Z]*O) next=output ;;
            wget:-qO- | wget:-O-) file=- ;;
            curl:-H | curl:-X | curl:-d | curl:-w | curl:-A | curl:--retry | curl:--max-time) next=skip ;;
            curl:-O | curl:--remote-name) quiet=named ;;
        esac
    done
    case $url in
        *://astral.sh/uv/* | *://github.com/astral-sh/uv/*install.sh)
            if [ "$name" = wget ] && [ -z "$file" ] || [ -n "$quiet" ]; then file=${url##*/}; fi
            case $file in '' | -) installer ;; *) installer > "$file" ;; esac
            exit 0 ;;
    esac
    real "$@"
    case $url in
        *://localhost* | *://127.* | '') ;;
        *) unmet "$name $url" ;;
    esac
    echo "$name: not there, and there is no network" >&2
    exit 6
}

packages() { # apt and apt-get
    action='' missing=''
    for word in "$@"; do
        case $word in
            -*) ;;
            *)
                if [ -z "$action" ]; then action=$word; continue; fi
                package=${word%%=*}
                if [ "$action" = install ] && ! is_there "$package"; then missing="$missing $package"; fi ;;
        esac
    done
    [ -z "$missing" ] && exit 0
    for package in $missing; do
        echo "E: $package is not there, and nothing can be installed here" >&2
        unmet "the system's package $package"
    done
    exit 100
}

is_there() {
    case " curl wget ca-certificates $UPSKILL_PACKAGES " in *" $1 "*) return 0 ;; esac
    command -v "$1" > /dev/null 2>&1 && return 0
    dpkg-query -W -f '${Status}' "$1" 2> /dev/null | grep -q 'ok installed'
}

run_uv() { # uv and uvx: a Python that is there in place of one that would be downloaded
    if [ "$name $1 $2" = "uv python install" ]; then
        echo "uv: Python is as it is here" >&2
        exit 0
    fi
    number=$# skip=''
    while [ "$number" -gt 0 ]; do
        word=$1
        shift
        number=$((number - 1))
        if [ -n "$skip" ]; then
            skip=''
            set -- "$@" "$word"
            continue
        fi
        case $word in
            -p | --python)
                if is_missing "$1"; then shift; number=$((number - 1)); else skip=yes; set -- "$@" "$word"; fi ;;
            --python=*)
                is_missing "${word#*=}" || set -- "$@" "$word" ;;
            *) set -- "$@" "$word" ;;
        esac
    done
    exec "$here/../uv/$name" "$@"
}

is_missing() {
    version=${1#python}
    case $version in 3.*.*) version=${version%.*} ;; esac
    case " $UPSKILL_WITHOUT " in
        *" $version "*) echo "uv: there is no Python $version here, so another one is used" >&2 ;;
        *) return 1 ;;
    esac
}

run_pip() {
    if [ "$1" != install ]; then
        real "$@"
        exec "$here/../uv/uv" pip "$@"
    fi
    shift
    number=$#
    while [ "$number" -gt 0 ]; do
        word=$1
        shift
        number=$((number - 1))
        case $word in
            --user | --root-user-action=* | --no-warn-script-location | --disable-pip-version-check) ;;
            --root-user-action) shift; number=$((number - 1)) ;;
            --no-cache-dir | --break-system-packages | --no-input | --progress-bar=*) ;;
            *) set -- "$@" "$word" ;;
        esac
    done
    export UV_LINK_MODE=copy # the cache is in another place
    if [ -n "$VIRTUAL_ENV" ]; then
        "$here/../uv/uv" pip install "$@"
    else
        "$here/../uv/uv" pip install --python "$(command -v python3)" --prefix "$HOME/.local" "$@"
    fi
    status=$?
    [ $status -eq 0 ] || unmet "pip install $*"
    exit $status
}

case $name in
    curl | wget) fetch "$@" ;;
    apt | apt-get) packages "$@" ;;
    uv | uvx) run_uv "$@" ;;
    pip*) run_pip "$@" ;;
    python) real "$@"; exec python3 "$@" ;;
esac
