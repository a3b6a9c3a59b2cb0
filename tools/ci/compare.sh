#!/usr/bin/env bash
# Two runs in CI: takes or records them, compares them, writes a report, and keeps one comment on the request.
#
# What is asked comes from the environment alone:
#   INFEROMETER_BASE, INFEROMETER_CANDIDATE                   files or stores of the runs, or, where these are empty:
#   INFEROMETER_BASE_COMMAND, INFEROMETER_CANDIDATE_COMMAND   what to record, a line of bash each
#   INFEROMETER_MAX_REGRESSION   accept so many percent more step time; empty: none beyond noise
#   INFEROMETER_STRICT           true: fail where nothing is proven, too; false (the default): say so and pass
#   INFEROMETER_OUT              the folder to write into, default inferometer-report: report.md, comparison.json,
#                                comment.md (what the check said, then the report), outputs, and what was recorded
#   INFEROMETER_COMMENT          true (the default): make or update the comment, by comment.py; false: don't
# On GitHub it also writes the job's summary, and the outputs outcome, verdict, ratio, report and comment.
#
# Exits with 0 where the check passes, 1 where it fails (slower beyond what is accepted, not comparable, or, if that is
# asked for, nothing proven), 2 for a wrong request, 3 for a file that can't be used, 4 where something is not installed, 5 where a recorded command fails,
# 70 for a bug. A comment that can't be made is a warning.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${INFEROMETER_OUT:-inferometer-report}
base=${INFEROMETER_BASE:-} base_command=${INFEROMETER_BASE_COMMAND:-}
candidate=${INFEROMETER_CANDIDATE:-} candidate_command=${INFEROMETER_CANDIDATE_COMMAND:-}
accepted=${INFEROMETER_MAX_REGRESSION:-}
strict=${INFEROMETER_STRICT:-false}
comment=${INFEROMETER_COMMENT:-true}

end() { # CODE MESSAGE
    printf 'compare.sh: %s\n' "$2" >&2
    exit "$1"
}

check_side() { # NAME FILE COMMAND
    if [ -n "$2" ] && [ -n "$3" ]; then end 2 "INFEROMETER_$1 and INFEROMETER_$1_COMMAND are mutually exclusive"; fi
    if [ -z "$2$3" ]; then end 2 "expected INFEROMETER_$1 or INFEROMETER_$1_COMMAND, found neither"; fi
}

check_word() { # NAME VALUE
    case "$2" in true | false) ;; *) end 2 "INFEROMETER_$1: expected true or false, found \"$2\"" ;; esac
}

record() { # SIDE COMMAND: without the tokens, which are none of the command's business
    local code=0
    env -u GITHUB_TOKEN -u GITLAB_TOKEN inferometer record --force -o "$out/$1.ifm" -- bash -c "$2" || code=$?
    if [ "$code" != 0 ]; then end 5 "the command of the $1 ended with $code"; fi
}

check_side BASE "$base" "$base_command"
check_side CANDIDATE "$candidate" "$candidate_command"
case "$out$base$candidate" in *$'\n'* | *$'\r'*) end 2 "expected names of one line" ;; esac
if [ -n "$accepted" ] && ! [[ $accepted =~ ^[0-9]+(\.[0-9]+)?$ ]]; then
    end 2 "INFEROMETER_MAX_REGRESSION: expected a percentage as in 2.5, found \"$accepted\""
fi
check_word STRICT "$strict"
check_word COMMENT "$comment"
for needed in inferometer python3; do
    command -v "$needed" >/dev/null || end 4 "$needed is not on PATH"
done

mkdir -p -- "$out"
if [ -z "$base" ]; then
    record base "$base_command"
    base=$out/base.ifm
fi
if [ -z "$candidate" ]; then
    record candidate "$candidate_command"
    candidate=$out/candidate.ifm
fi

check=(--check)
if [ -n "$accepted" ]; then check+=(--max-regression "$accepted"); fi
if [ "$strict" = true ]; then check+=(--strict); fi
code=0
inferometer compare --json "${check[@]}" -- "$base" "$candidate" >"$out/comparison.json" 2>"$out/said" || code=$?
cat -- "$out/said" >&2
case "$code" in
    0) said=passed ;;
    1) said=failed ;;
    *) exit "$code" ;;
esac

# Words that the command chooses from, and a number: nothing of what the files say.
kind=0
python3 - "$out/comparison.json" >"$out/outputs" <<'PYTHON' || kind=$?
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    found = json.load(file)
outcome = found.get("outcome", found["verdict"])  # two results of a benchmark have a verdict alone
ratio = found.get("comparable", {}).get("step_ratio")
print(f"outcome={outcome}\nverdict={found['verdict']}\nratio={'' if ratio is None else f'{ratio:.4f}'}")
sys.exit(0 if "comparable" in found else 9)
PYTHON
case "$kind" in
    0) inferometer report --force -o "$out/report.md" -- "$base" "$candidate" >/dev/null ;;
    9) inferometer compare --markdown -- "$base" "$candidate" >"$out/report.md" ;; # a benchmark's: there is no page
    *) end 70 "comparison.json is not what was expected" ;;
esac
open=$(grep '^not proven: ' "$out/said" || true)
{
    printf '**Check %s**: `inferometer compare %s`\n\n' "$said" "${check[*]}"
    if [ -n "$open" ]; then printf 'Not proven: a regression is neither shown nor excluded.\n\n'; fi
    cat -- "$out/report.md"
} >"$out/comment.md"

printf 'report=%s\ncomment=%s\n' "$out/report.md" "$out/comment.md" >>"$out/outputs"
if [ -n "${GITHUB_OUTPUT:-}" ]; then cat -- "$out/outputs" >>"$GITHUB_OUTPUT"; fi
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat -- "$out/comment.md" >>"$GITHUB_STEP_SUMMARY"; fi

printf 'check %s\n' "$said"
cat -- "$out/outputs"
if [ "$comment" = true ]; then
    python3 "$here/comment.py" "$out/comment.md" || printf 'compare.sh: no comment was made; the check counts\n' >&2
fi
exit "$code"
