#!/bin/sh
# Proves that a publication is in a signed log, with openssl and the usual text tools. Explained in docs/proof.md.
#
#   sh verify-proof.sh FILE PROOF POLICY
#
# POLICY is your copy of the log's policy. Not checked: proofs of legacy publications, which are JSON.
set -eu
export LC_ALL=C
[ $# -eq 3 ] || { echo 'usage: sh verify-proof.sh FILE PROOF POLICY' >&2; exit 64; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$1" "$work/file" && cp "$2" "$work/proof" && cp "$3" "$work/policy"
cd "$work"

fail() { echo "FAILED: $1"; exit 1; }
decode() { openssl base64 -d -A; }
sha256() { openssl dgst -sha256 -binary; }
hex() { od -An -v -tx1 | tr -d ' \n'; }

# Split the proof: header, entry, index, hashes; after an empty line the checkpoint, and its signatures after another.
[ "$(head -n 1 proof)" = 'c2sp.org/tlog-proof@v1' ] || fail 'this is not a proof file'
sed -n '2s/^extra //p' proof | tr -d '\n' | decode > entry
index=$(sed -n '3s/^index //p' proof)
sed '1,3d; /^$/,$d' proof > hashes
sed '1,/^$/d' proof > note
sed '/^$/,$d' note > text
origin=$(sed -n 1p text) size=$(sed -n 2p text) root=$(sed -n 3p text)
case $index:$size in *[!0-9:]* | :* | *: | 0[0-9]* | *:0*) fail 'the index or the size of the tree is not a number' ;; esac
[ "$index" -lt "$size" ] || fail "a tree of $size entries has no entry $index"

# 1. The entry contains the SHA-256 and the size of the file.
digest=$(sha256 < file | hex)
case $(cat entry) in
  '["dash-year-ledger/1","'*"\",$((index + 1)),\"publication\","*",\"$digest\",$(($(wc -c < file))),null,null,null,null]") ;;
  *) fail "entry $((index + 1)) is not of a file with the SHA-256 $digest" ;;
esac

# 2. The hashes lead from the entry to the root of the checkpoint (RFC 9162, 2.1.3.2).
{ printf '\000'; cat entry; } | sha256 > current
node=$index last=$((size - 1))
while IFS= read -r line; do
  [ "$last" -gt 0 ] || fail 'the proof has too many hashes'
  printf %s "$line" | decode > sibling
  if [ $((node % 2)) -eq 1 ] || [ "$node" -eq "$last" ]; then
    { printf '\001'; cat sibling current; } | sha256 > parent
    while [ $((node % 2)) -eq 0 ] && [ "$node" -gt 0 ]; do node=$((node / 2)) last=$((last / 2)); done
  else
    { printf '\001'; cat current sibling; } | sha256 > parent
  fi
  mv parent current
  node=$((node / 2)) last=$((last / 2))
done < hashes
[ "$last" -eq 0 ] || fail 'the proof has too few hashes'
[ "$(openssl base64 -A < current)" = "$root" ] || fail "entry $((index + 1)) is not in the tree of the checkpoint"

# 3. The key of the log in the policy signed the checkpoint.
signed=no
sed -n 's/^log \([^ ]*\).*/\1/p' policy > keys
while IFS= read -r key; do
  case $key in "$origin+"????????+*) ;; *) continue ;; esac
  id=${key#"$origin+"} id=${id%%+*}
  # The DER prefix of an Ed25519 public key, and its last 32 bytes.
  { printf '\060\052\060\005\006\003\053\145\160\003\041\000'
    printf %s "${key#"$origin+$id+"}" | decode | tail -c 32; } > key.der
  sed '1,/^$/d' note > signatures
  while IFS= read -r line; do
    case $line in "— $origin "*) ;; *) continue ;; esac
    printf %s "${line#"— $origin "}" | decode > signature
    [ "$(head -c 4 signature | hex)" = "$id" ] || continue
    tail -c +5 signature > ed25519
    openssl pkeyutl -verify -pubin -keyform DER -inkey key.der -rawin -in text -sigfile ed25519 > /dev/null 2>&1 ||
      fail "the signature of $origin is invalid"
    signed=yes
  done < signatures
done < keys
[ "$signed" = yes ] || fail "no key of $origin in the policy signed the checkpoint"

echo "OK: the file with the SHA-256 $digest is entry $((index + 1)) of $size of the log $origin"
