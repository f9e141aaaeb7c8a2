# For .ci/run and the legs beside it, which source it.
PATH=$PATH:/usr/sbin:/sbin

section() { printf '\n== %s\n' "$*"; }

# Ends a leg that cannot be run here. .ci/run says so again at its end; under PLANNER_CI_ALL=1 it fails.
unavailable() {
    printf 'SKIPPED: %s\n' "$*"
    exit 77
}

# need PROGRAM PACKAGE…: CI installs Debian's packages where the program is missing; nobody else's machine is
# changed.
need() {
    local program=$1
    shift
    ! command -v "$program" >/dev/null || return 0
    [[ ${CI:-} == true && $EUID == 0 ]] || unavailable "there is no $program (Debian: $*)"
    command -v apt-get >/dev/null || unavailable "there is no $program, and no apt-get to install $* with"
    {
        apt-get -qq update
        DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "$@"
    } >/dev/null 2>&1 || unavailable "there is no $program, and apt-get could not install $*"
}
