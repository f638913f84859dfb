import type { InArgs, InStatement, ResultSet } from '@libsql/client'
import type { Reader, StoreClient } from './store-client.ts'

/**
 * Given to every connection of a file before each use: the engine then refuses whatever would write, with
 * SQLITE_READONLY.
 */
export const QUERY_ONLY = 'PRAGMA query_only = ON'

/** No statement of SQLite's that begins so writes. */
const SELECTION = /^\s*SELECT\b/i

/**
 * A client that takes nothing but single SELECT statements. It stands before an engine that refuses writes itself, and
 * keeps from it what that leaves open: settings, and files that would be attached.
 */
export function readOnlyClient(client: StoreClient): StoreClient {
  return {
    execute: selecting(client),
    batch: (statements) => {
      const whole = statements.map((each) => (Array.isArray(each) ? toStatement(...each) : toStatement(each)))
      return whole.every(isSelection) ? client.batch(whole, 'read') : refuse()
    },
    snapshot: (revision, read) => client.snapshot(revision, (reader) => read({ execute: selecting(reader) })),
    batchWithin: refuse,
    transaction: refuse,
    migrate: refuse,
    executeMultiple: refuse,
    makeDurable: refuse,
    sync: refuse,
    reconnect: () => client.reconnect(),
    close: () => client.close(),
    get closed() {
      return client.closed
    },
    get protocol() {
      return client.protocol
    },
  }
}

/** `execute` of a client, for selections alone. */
function selecting(reader: Reader): (statement: InStatement | string, args?: InArgs) => Promise<ResultSet> {
  return (statement, args) => {
    const whole = toStatement(statement, args)
    return isSelection(whole) ? reader.execute(whole) : refuse()
  }
}

interface Statement {
  sql: string
  args: InArgs
}

function toStatement(statement: InStatement | string, args: InArgs = []): Statement {
  return typeof statement === 'string' ? { sql: statement, args } : { args: [], ...statement }
}

function isSelection({ sql }: Statement): boolean {
  return SELECTION.test(sql)
}

function refuse(): Promise<never> {
  return Promise.reject(new Error('this handle only reads: nothing but SELECT is taken'))
}
