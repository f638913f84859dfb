/** One line of an input file; `problem` stands in for a line that cannot be text. */
export type InputLine = { number: number; text: string } | { number: number; problem: string }

/** A file of lines that can be read more than once from its beginning. */
export interface LineSource {
  /** As the user named it. */
  name: string
  /**
   * All lines in order, in batches; blank lines are left out but counted in the numbers.
   *
   * @throws Refusal `input_unreadable` when the file is missing, unreadable, or a broken or truncated gzip
   */
  lines(): AsyncIterable<InputLine[]>
}

/** The folder of an older archive: the list of its publications, and their bytes. */
export interface ArchiveFolder {
  /** One manifest a line. */
  manifests: LineSource
  /**
   * The bytes of one file, read only when it has `byteSize` of them.
   *
   * @param file relative path, as a manifest gives it
   * @throws Refusal `input_unreadable` when it is missing, unreadable, outside the folder, no regular file, or of
   *   another size
   */
  read(file: string, byteSize: number): Promise<Uint8Array>
}
