import { loadConfig } from '#src/config.ts'
import { silentLog } from '#src/lib/log.ts'
import { masterKey } from '#src/lib/master-key.ts'
import { openCore } from '#src/operations/core.ts'
import { START } from '#test/support/app.ts'
import { freshStore } from '#test/support/store.ts'
import { xmlReader } from '#test/support/xml-reader.ts'

/**
 * Returns the parts of a server that the key store needs, on a database of its own. `touched` acts like a
 * commit by another process.
 */
export const keyBase = async () => {
  const store = await freshStore()
  const listeners: (() => void)[] = []
  let now = START
  const base = openCore({
    config: loadConfig({}).config,
    store: {
      ...store,
      onChange: (listener: Parameters<typeof store.onChange>[0]) => {
        listeners.push(() => listener())
        store.onChange(listener)
      },
    },
    clock: { now: () => now },
    log: silentLog,
    master: masterKey(Buffer.alloc(32, 7)),
    fetch,
    xml: xmlReader,
  })
  return {
    ...base,
    /** The same database, as another process would open it. */
    elsewhere: { ...base, store },
    touched: () => {
      for (const listener of listeners) listener()
    },
    advance: (ms: number) => {
      now += ms
    },
  }
}
