import { defineConfig } from 'drizzle-kit'

// One database a store: `DASH_STORE=ledger npx drizzle-kit generate --custom` starts the next numbered migration.
const store = process.env['DASH_STORE'] ?? 'ledger'

export default defineConfig({
  dialect: 'sqlite',
  // drizzle-kit requires a schema, but `--custom` does not read it.
  schema: './src/adapters/*/schema.ts',
  out: `./migrations/${store}`,
})
