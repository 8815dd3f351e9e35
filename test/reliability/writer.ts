import { hashSecret } from '#src/lib/secrets.ts'
import { openSqlite } from '#src/storage/sqlite/store.ts'

// Runs eight concurrent loops of writes until the process is killed. Prints each acknowledged write.
const [path = '', round = ''] = process.argv.slice(2)
const store = await openSqlite({ path })

/** Each write has two rows. After a kill, either both rows or none of them exist. */
const write = (name: string) =>
  store.write(async tx => {
    const { settings } = tx.tables
    await tx.insert(settings).values({ name, value: hashSecret(name), updated_at: 1 })
    await tx.insert(settings).values({ name: `${name}.twin`, value: 'x'.repeat(3_000), updated_at: 1 })
  })

for (let track = 0; track < 8; track++)
  void (async () => {
    for (let n = 0; ; n++) {
      await write(`${round}.${track}.${n}`)
      process.stdout.write(`${round}.${track}.${n}\n`)
    }
  })()
