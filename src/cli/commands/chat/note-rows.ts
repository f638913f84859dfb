import { printable } from '../../terminal.ts'
import { wrap } from './wrap.ts'

/** Columns that a line beside the answers may take: some terminals wrap once the last one is written. */
export function noteColumns({ columns }: NodeJS.WriteStream): number {
  return Math.max(8, columns - 1)
}

/** A text beside the answers as rows of a terminal, broken between words. */
export function noteRows(text: string, columns: number, colored: boolean): string[] {
  return wrap([{ text: printable(text), styles: ['dim'] }], columns, { colored }).map((row) => row.text)
}
