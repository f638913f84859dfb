#!/bin/sh
# Starts dash at the times of a schedule, in UTC; it replaces cron in a container.
#
#   timer.sh [SCHEDULE]          runs until a signal stops it
#   timer.sh --next [SCHEDULE]   prints when each line is due next
#
# A run that is due while the previous one is active is skipped; one that came due while the machine slept starts at once.
# On SIGTERM the timer starts no further run, stops the current one and waits for its end.
set -eu
set -f

show_next=false
if [ "${1:-}" = --next ]; then
  show_next=true
  shift
fi
schedule=${1:-/opt/dash/ops/container/schedule}
dash=${DASH_PROGRAM:-/usr/local/bin/node /opt/dash/dist/cli/main.js}

now() { date -u +%s; }

refuse() {
  echo "error: $schedule: $1; write DAYS TIMES ARGUMENTS, as in: * 00:10,00:40 publish-year --once" >&2
  exit 78
}

# check DAYS TIMES COMMAND: refuses an invalid line.
check() {
  [ -n "${3:-}" ] || refuse "the line '$*' names no command"
  case $1 in
    '*') ;;
    *[!1-7,]* | *[1-7][1-7]* | ,* | *, | *,,*) refuse "the days '$1' are neither * nor numbers from 1 (Monday) to 7" ;;
  esac
  case $2 in
    ,* | *, | *,,*) refuse "the times '$2' are no list of HH:MM" ;;
  esac
  for time in $(echo "$2" | tr , ' '); do
    case $time in
      [01][0-9]:[0-5][0-9] | 2[0-3]:[0-5][0-9]) ;;
      *) refuse "the time '$time' is not HH:MM" ;;
    esac
  done
}

# next_run DAYS TIMES AFTER: the first instant of a line after an instant, in seconds.
next_run() {
  day=$(($3 / 86400))
  last=$((day + 7))
  while [ "$day" -le "$last" ]; do
    # The first of January 1970 was a Thursday.
    weekday=$(((day + 3) % 7 + 1))
    found=
    case ",$1," in
      *,"$weekday",* | ',*,')
        for time in $(echo "$2" | tr , ' '); do
          hours=${time%:*}
          minutes=${time#*:}
          at=$((day * 86400 + ${hours#0} * 3600 + ${minutes#0} * 60))
          if [ "$at" -gt "$3" ] && [ "$at" -lt "${found:-$((at + 1))}" ]; then found=$at; fi
        done
        ;;
    esac
    if [ -n "$found" ]; then
      echo "$found"
      return
    fi
    day=$((day + 1))
  done
}

# wait_for PID: waits until it has ended, despite signals; returns its exit code.
wait_for() {
  code=0
  wait "$1" || code=$?
  while kill -0 "$1" 2>/dev/null; do
    code=0
    wait "$1" || code=$?
  done
  return "$code"
}

# keep DAYS TIMES ARGUMENTS…: runs one line of the schedule for ever.
keep() {
  days=$1
  times=$2
  shift 2
  child=
  stopping=false
  trap 'stopping=true; if [ -n "$child" ]; then kill -TERM "$child" 2>/dev/null || :; fi' TERM
  after=$(now)
  while ! "$stopping"; do
    due=$(next_run "$days" "$times" "$after")
    left=$((due - $(now)))
    if [ "$left" -gt 0 ]; then
      # Short, so that the timer notices a sleep of the machine or a change of its clock.
      if [ "$left" -gt 60 ]; then left=60; fi
      sleep "$left" &
      child=$!
      wait_for "$child" || :
      continue
    fi
    # shellcheck disable=SC2086
    $dash "$@" &
    child=$!
    code=0
    wait_for "$child" || code=$?
    child=
    if [ "$code" -ne 0 ]; then echo "$1 ended with $code" >&2; fi
    after=$(now)
  done
}

[ -r "$schedule" ] || refuse 'it cannot be read'
lines=$(sed -e 's/#.*//' -e 's/[[:space:]]*$//' "$schedule" | grep . || :)
[ -n "$lines" ] || refuse 'it has no line'

pids=
while read -r line; do
  # shellcheck disable=SC2086
  set -- $line
  check "$@"
done <<LINES
$lines
LINES
while read -r line; do
  # shellcheck disable=SC2086
  set -- $line
  if "$show_next"; then
    due=$(next_run "$1" "$2" "$(now)")
    shift 2
    echo "$(date -u -d "@$due" +%Y-%m-%dT%H:%M:%SZ) $*"
    continue
  fi
  keep "$@" </dev/null &
  pids="$pids $!"
done <<LINES
$lines
LINES
if "$show_next"; then exit 0; fi

# shellcheck disable=SC2086
trap 'kill -TERM $pids 2>/dev/null || :' TERM INT
for pid in $pids; do wait_for "$pid" || :; done
