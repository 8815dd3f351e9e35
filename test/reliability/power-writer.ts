import { dlopen } from 'bun:ffi'
import { openSqlite } from '#src/storage/sqlite/store.ts'

// Runs eight concurrent loops. Each loop writes two rows at a time and records the acknowledgement in the log
// of faults.c.
const [path = '', library = '', writes = '', durable = 'true'] = process.argv.slice(2)
const { symbols } = dlopen(library, { acknowledge: { args: ['cstring'], returns: 'void' } })
const store = await openSqlite({ path, durable: durable === 'true' })

const write = async (name: string): Promise<void> => {
  await store.write(async tx => {
    const { settings } = tx.tables
    await tx.insert(settings).values({ name, value: 'x'.repeat(6_000), updated_at: 1 })
    await tx.insert(settings).values({ name: `${name}.twin`, value: 'x'.repeat(6_000), updated_at: 1 })
  })
  symbols.acknowledge(Buffer.from(`${name}\0`))
}

const each = Number(writes) / 8
await Promise.all(
  Array.from({ length: 8 }, async (_, track) => {
    for (let n = 0; n < each; n++) await write(`${track}.${n}`)
  }),
)
// The process ends itself with SIGKILL, because a clean stop would sync the files.
process.kill(process.pid, 'SIGKILL')
