#!/bin/sh
# Audits a host of dash with curl and sha256sum. Explained in docs/auditing.md.
#
#   BASE=https://the.host sh audit.sh keep    stores the host's newest head in kept-head.json
#   BASE=https://the.host sh audit.sh check   proves the host's history against that head
#
# Reads and writes files of the current folder. NEWEST=30 asks for the 30 newest publications alone.
set -eu
export LC_ALL=C
BASE=${BASE:-http://127.0.0.1:3000}
BASE=${BASE%/}

fail() { echo "FAILED: $1"; exit 1; }
fetch() { curl -fsS -H 'Cache-Control: no-cache' "$BASE$1" -o "$2" || fail "the host does not give $1"; }
digest() { sha256sum | cut -c1-64; }
pin() { sed -n 's/^{"seq":\([0-9]*\),"leaf":"\([0-9a-f]*\)",.*/\1 \2/p' "$1"; }
# A redirect or a page in place of the head must not be kept.
fetch_head() {
  fetch /api/feed/history/head head.json
  [ -n "$(pin head.json)" ] || fail "$BASE sends no head; is that the host's address today?"
}

case ${1:-} in
  keep)
    [ ! -e kept-head.json ] || fail 'kept-head.json exists; check the host against it, then move it away'
    fetch_head
    cp head.json kept-head.json
    cat kept-head.json
    exit ;;
  check) [ -e kept-head.json ] || fail 'kept-head.json is missing; begin with: sh audit.sh keep' ;;
  *) echo 'usage: BASE=https://the.host sh audit.sh keep|check' >&2; exit 64 ;;
esac

# 1. Fetch the head and both ledgers.
fetch_head
fetch /api/feed/history/ledger ledger.ndjson
fetch /api/feed/history/ledger/legacy legacy.ndjson

# 2. Hash the chain: each line names the digest of the line before it, the first one 64 zeros.
number=0
leaf=$(printf '%064d' 0)
: > leaves
while IFS= read -r line || [ -n "$line" ]; do
  number=$((number + 1))
  case $line in
    "[\"dash-year-ledger/1\",\"$leaf\",$number,"*) ;;
    *) fail "entry $number does not continue the entry before it" ;;
  esac
  leaf=$(printf '%s' "$line" | digest)
  echo "$number $leaf" >> leaves
done < ledger.ndjson
echo "the chain of $number entries holds"

# 3. Find both heads in the chain: the kept one, and the one the host shows now.
has() { [ -n "$1" ] && grep -qx "$1" leaves; }
kept=$(pin kept-head.json)
shown=$(pin head.json)
has "$kept" || fail "the entry you kept is gone or was changed: ${kept:-unreadable}"
has "$shown" || fail "the head the host shows is not in its ledger: ${shown:-unreadable}"
[ "$number" -le $((${shown%% *} + 1)) ] || fail "the newest head of the host is older than its ledger"
echo "the entry you kept, ${kept%% *}, is still there as it was"

# 4. Check the legacy ledger against the entry that seals it.
seal=$(grep -c '^\["dash-year-ledger/1","[0-9a-f]*",[0-9]*,"legacy-seal",' ledger.ndjson || true)
sealed=$(sed -n '/^\["dash-year-ledger\/1","[0-9a-f]*",[0-9]*,"legacy-seal",/s/.*,"\([0-9a-f]*\)"\]$/\1/p' ledger.ndjson)
if [ "$seal" -eq 0 ]; then
  [ ! -s legacy.ndjson ] || fail 'the host shows legacy publications that no entry seals'
elif [ "$seal" -ne 1 ] || [ "$(digest < legacy.ndjson)" != "$sealed" ]; then
  fail 'the legacy ledger does not match its seal'
fi

# 5. List the publications of both ledgers in order: epoch milliseconds, ledger, place, digest.
versioned='s/^\["dash-year-ledger\/1","[0-9a-f]*",\([0-9]*\),"publication",.*,\([0-9]*\),"\([0-9a-f]*\)",[0-9]*,null,null,null,null\]$/\2 1 \1 \3/p'
legacy='s/^\[\([0-9]*\),.*,\([0-9]*\),"\([0-9a-f]*\)",[0-9]*\]$/\2 0 \1 \3/p'
{
  sed -n "$versioned" ledger.ndjson
  { cat legacy.ndjson; echo; } | sed -n "$legacy"
} | sort -n -k1,1 -k2,2 -k3,3 > publications
listed=$(($(grep -c '^\["dash-year-ledger/1","[0-9a-f]*",[0-9]*,"publication",' ledger.ndjson || true) +
  $(grep -c '^\[' legacy.ndjson || true)))
[ "$(grep -c . publications || true)" -eq "$listed" ] || fail 'a publication in the ledger cannot be read'

# 6. Ask for each publication at its own time, and a millisecond before.
clock() { date -u -d "@$1" +%Y-%m-%dT%H:%M:%S 2> /dev/null || date -u -r "$1" +%Y-%m-%dT%H:%M:%S; }
instant() { printf '%s.%03dZ' "$(clock $(($1 / 1000)))" $(($1 % 1000)); }
# Digest of the body the host selects for a time; "none" for 404.
selected() {
  status=$(curl -sS -H 'Cache-Control: no-cache' -o body -w '%{http_code}' \
    "$BASE/api/feed/history?sort=year&at=$(instant "$1")") || status=unreachable
  case $status in
    200) digest < body ;;
    404) echo none ;;
    *) echo "status $status" ;;
  esac
}

compare() {
  case $1 in
    "$2") ;;
    status*) fail "no answer about the $3: $1; try again later" ;;
    *) fail "another $3 than $2" ;;
  esac
}

NEWEST=${NEWEST:-$listed}
asked=0
place=0
before=none
sed 1d publications | cut -d' ' -f1 > following
while read -r time _ _ sha256; do
  place=$((place + 1))
  # Of several publications at one time, only the last can be selected.
  if [ "$(sed -n "${place}p" following)" != "$time" ]; then
    if [ "$place" -gt $((listed - NEWEST)) ]; then
      compare "$(selected "$time")" "$sha256" "body at $(instant "$time")"
      compare "$(selected $((time - 1)))" "$before" "selection before $(instant "$time")"
      asked=$((asked + 1))
    fi
    before=$sha256
  fi
done < publications
[ "$asked" -gt 0 ] || [ "$listed" -eq 0 ] || fail 'no publication was asked for'
echo "OK: $number entries hold, $asked publications are what they say"
