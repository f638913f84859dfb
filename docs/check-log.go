// Command check-log checks a signed log with none of dash's code: with Go's standard library and the note and tlog
// packages of its checksum database (golang.org/x/mod/sumdb).
//
// On Debian and Ubuntu:
//
//	apt-get install golang-go golang-golang-x-mod-dev
//	GO111MODULE=off GOPATH=/usr/share/gocode go build check-log.go
//	./check-log KEY LOG [FILE...]
//
// KEY is the log's verifier key. LOG is a folder or a URL with the files checkpoint and tile/ (C2SP tlog-tiles). Each
// FILE is another signed checkpoint of the log, or a proof file (C2SP tlog-proof).
//
// The program checks that the tiles hash to the signed root, that every entry is in the tree, that every two
// checkpoints are consistent, and that every proof is valid. It prints a line for each check. The exit code is 1 if a
// check fails and 2 for a wrong command line.
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const (
	tileHeight = 8
	tileWidth  = 1 << tileHeight
	// maxFileBytes is more than a bundle of the longest entries has.
	maxFileBytes = 1 << 25
)

// A reader returns the bytes of a file.
type reader func(name string) ([]byte, error)

// logReader reads files by their path below the log's prefix.
func logReader(location string) reader {
	if strings.HasPrefix(location, "http://") || strings.HasPrefix(location, "https://") {
		client := http.Client{Timeout: 30 * time.Second}
		return func(path string) ([]byte, error) {
			response, err := client.Get(strings.TrimSuffix(location, "/") + "/" + path)
			if err != nil {
				return nil, err
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusOK {
				return nil, fmt.Errorf("GET %s: %s", path, response.Status)
			}
			return readLimited(response.Body)
		}
	}
	return func(path string) ([]byte, error) {
		file, err := os.Open(filepath.Join(location, filepath.FromSlash(path)))
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return readLimited(file)
	}
}

func readLimited(from io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		err = fmt.Errorf("more than %d bytes", maxFileBytes)
	}
	return data, err
}

// A tileReader reads the tiles of C2SP tlog-tiles for the tlog package.
type tileReader struct{ read reader }

func (tileReader) Height() int { return tileHeight }

func (tileReader) SaveTiles([]tlog.Tile, [][]byte) {}

func (r tileReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	data := make([][]byte, len(tiles))
	for i, tile := range tiles {
		bytes, err := r.read(tilePath(tile))
		if err != nil {
			return nil, err
		}
		data[i] = bytes
	}
	return data, nil
}

// tilePath maps the path that tlog gives a tile, tile/8/0/000, to the one of tlog-tiles, tile/0/000.
func tilePath(tile tlog.Tile) string {
	return strings.NewReplacer("tile/8/data/", "tile/entries/", "tile/8/", "tile/").Replace(tile.Path())
}

// A judge checks files of one log.
type judge struct {
	origin string
	keys   note.Verifiers
}

// openCheckpoint verifies a signed checkpoint and returns its tree.
func (j judge) openCheckpoint(text []byte) (tlog.Tree, error) {
	var tree tlog.Tree
	opened, err := note.Open(text, j.keys)
	if err != nil {
		return tree, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) < 4 || lines[0] != j.origin {
		return tree, fmt.Errorf("it is not a checkpoint of %s", j.origin)
	}
	if tree.N, err = strconv.ParseInt(lines[1], 10, 64); err != nil {
		return tree, err
	}
	tree.Hash, err = tlog.ParseHash(lines[2])
	return tree, err
}

// checkEntries checks that each entry of the bundles is in the tree.
func checkEntries(tree tlog.Tree, read reader, hashes tlog.HashReader) error {
	for first := int64(0); first < tree.N; first += tileWidth {
		width := tree.N - first
		if width > tileWidth {
			width = tileWidth
		}
		path := tilePath(tlog.Tile{H: tileHeight, L: -1, N: first / tileWidth, W: int(width)})
		bundle, err := read(path)
		if err != nil {
			return err
		}
		indexes := make([]int64, width)
		for i := range indexes {
			indexes[i] = tlog.StoredHashIndex(0, first+int64(i))
		}
		leaves, err := hashes.ReadHashes(indexes)
		if err != nil {
			return err
		}
		for i, leaf := range leaves {
			if len(bundle) < 2 || len(bundle)-2 < int(binary.BigEndian.Uint16(bundle)) {
				return fmt.Errorf("%s ends in entry %d", path, first+int64(i))
			}
			end := 2 + int(binary.BigEndian.Uint16(bundle))
			if tlog.RecordHash(bundle[2:end]) != leaf {
				return fmt.Errorf("entry %d in %s is not in the tree", first+int64(i), path)
			}
			bundle = bundle[end:]
		}
		if len(bundle) > 0 {
			return fmt.Errorf("%s has %d bytes more than its entries", path, len(bundle))
		}
	}
	return nil
}

// checkConsistency checks that of every two trees the larger continues the smaller.
func checkConsistency(trees []tlog.Tree, hashes tlog.HashReader) error {
	sort.Slice(trees, func(a, b int) bool { return trees[a].N < trees[b].N })
	for b, newer := range trees {
		for _, older := range trees[:b] {
			proof, err := tlog.ProveTree(newer.N, older.N, hashes)
			if err == nil {
				err = tlog.CheckTree(proof, newer.N, newer.Hash, older.N, older.Hash)
			}
			if err != nil {
				return fmt.Errorf("the trees of %d and %d entries: %w", older.N, newer.N, err)
			}
		}
	}
	return nil
}

const proofHeader = "c2sp.org/tlog-proof@v1\n"

// checkProof checks a proof file and returns the tree of its checkpoint.
func (j judge) checkProof(text []byte) (index int64, tree tlog.Tree, err error) {
	parts := strings.SplitN(strings.TrimPrefix(string(text), proofHeader), "\n\n", 2)
	lines := strings.Split(parts[0], "\n")
	if len(parts) < 2 || len(lines) < 2 || !strings.HasPrefix(lines[0], "extra ") || !strings.HasPrefix(lines[1], "index ") {
		return 0, tree, errors.New("it is not a proof file")
	}
	entry, err := base64.StdEncoding.DecodeString(lines[0][len("extra "):])
	if err != nil {
		return 0, tree, err
	}
	if index, err = strconv.ParseInt(lines[1][len("index "):], 10, 64); err != nil {
		return 0, tree, err
	}
	var proof tlog.RecordProof
	for _, line := range lines[2:] {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			return 0, tree, err
		}
		proof = append(proof, hash)
	}
	if tree, err = j.openCheckpoint([]byte(parts[1])); err != nil {
		return 0, tree, err
	}
	// CheckRecord panics if the index is outside of the tree.
	if index < 0 || index >= tree.N {
		return 0, tree, fmt.Errorf("a tree of %d entries has no entry %d", tree.N, index)
	}
	return index, tree, tlog.CheckRecord(proof, tree.N, tree.Hash, index, tlog.RecordHash(entry))
}

// check runs all checks, prints a line for each, and returns the first failure.
func (j judge) check(read reader, files []string) error {
	text, err := read("checkpoint")
	if err != nil {
		return err
	}
	tree, err := j.openCheckpoint(text)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	fmt.Printf("ok checkpoint: %s signed a tree of %d entries\n", j.origin, tree.N)
	hashes := tlog.TileHashReader(tree, tileReader{read})
	root, err := tlog.TreeHash(tree.N, hashes)
	if err != nil {
		return fmt.Errorf("tiles: %w", err)
	}
	if root != tree.Hash {
		return errors.New("tiles: they do not hash to the signed root")
	}
	fmt.Printf("ok tiles: they hash to the signed root %s\n", root)
	if err := checkEntries(tree, read, hashes); err != nil {
		return fmt.Errorf("entries: %w", err)
	}
	fmt.Printf("ok entries: all %d are in the tree\n", tree.N)
	trees := []tlog.Tree{tree}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var tree tlog.Tree
		if bytes.HasPrefix(text, []byte(proofHeader)) {
			var index int64
			if index, tree, err = j.checkProof(text); err == nil {
				fmt.Printf("ok proof %s: entry %d is in the tree of %d\n", file, index, tree.N)
			}
		} else {
			tree, err = j.openCheckpoint(text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		trees = append(trees, tree)
	}
	if err := checkConsistency(trees, hashes); err != nil {
		return fmt.Errorf("consistency: %w", err)
	}
	fmt.Printf("ok consistency: every two of %d checkpoints\n", len(trees))
	return nil
}

func run(vkey, location string, files []string) error {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return fmt.Errorf("%s: %w", vkey, err)
	}
	return judge{verifier.Name(), note.VerifierList(verifier)}.check(logReader(location), files)
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: check-log KEY LOG [FILE...]")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "failed", err)
		os.Exit(1)
	}
}
