import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '#src/config.ts'
import type { Core, Outbound } from '#src/context.ts'
import { devClock } from '#src/dev/clock.ts'
import { defaultSeed, SERVICE } from '#src/dev/default-seed.ts'
import { CONTROL_HEADER } from '#src/dev/host-check.ts'
import { openXmlReader } from '#src/directory/identity-providers/xml-reader.ts'
import { lateOutbound } from '#src/http/late-outbound.ts'
import type { Logger } from '#src/lib/log.ts'
import { masterKey } from '#src/lib/master-key.ts'
import { captureMail } from '#src/mail/captured.ts'
import { openCore } from '#src/operations/core.ts'
import { openInstanceKey } from '#src/operations/instance-key.ts'
import type { ReadSeed } from '#src/seed/read.ts'
import type { SeedInput } from '#src/seed/schema.ts'
import { openStore } from '#src/storage/open.ts'

interface Prepared {
  /** Parsed seed; undefined for the default seed. */
  read: ReadSeed | undefined
  /** True when the store begins with the prepared rows of the default seed (dev/seed-image.ts). */
  hasImage: boolean
  /** Bearer token of the controls. */
  control_token: string
  /** Certificate (PEM) that the server made for itself. */
  ca: string | undefined
}

/**
 * Opens the store with the data of the seed. Closes the store again when the seed is refused.
 *
 * @param data_dir undefined for a store that is deleted at the end
 * @param key private JWK that signs from the start
 * @throws SeedError when the seed cannot be applied, AppError for a `key` that cannot sign
 */
export const openSeeded = async (
  config: Config,
  log: Logger,
  { data_dir, key }: { data_dir?: string | undefined; key?: JsonWebKey | undefined },
  { read, hasImage, control_token, ca }: Prepared,
) => {
  const image = hasImage ? await import('#src/dev/seed-image.ts') : undefined
  const clock = devClock()
  const store = await openStore(config, { durable: data_dir !== undefined, image: image?.seedImage })
  const [mail, xml] = [captureMail(), openXmlReader()]
  try {
    const { key: master } = await openInstanceKey(store, [ownMasterKey(config.data_dir)], clock.now())
    const fetch = withOwn(
      lateOutbound(config),
      { origin: new URL(config.url).origin, fetch: lateOutbound(config, { ca }) },
      control_token,
    )
    const base = openCore({ config, store, clock, log, fetch, xml, master, mail })
    if (image) await image.completeSeed(base)
    else await seedInstance(base, read)
    if (key) await (await import('#src/tokens/manual-keys.ts')).pinKey(base, key)
    return { base, clock, mail, xml }
  } catch (error) {
    xml.stop()
    await store.close()
    throw error
  }
}

const seedInstance = async (base: Core, read: ReadSeed | undefined): Promise<void> => {
  await (await import('#src/operations/first-start.ts')).createInstance(base)
  const { applySeed } = await import('#src/seed/apply.ts')
  await applySeed(base, read ?? (await readGiven(defaultSeed)), { any_password: true })
}

/**
 * Checks a seed and returns it. A `SeedInput` is parsed first. A seed without clients gets `dev-service`, so
 * that the client to which tokens are minted, and whose id and secret `exec` passes on, exists.
 *
 * @throws SeedError for an invalid seed
 */
export const readGiven = async (seed: SeedInput | ReadSeed): Promise<ReadSeed> => {
  const { readSeed, requireSound } = await import('#src/seed/read.ts')
  const read = requireSound('entries' in seed ? seed : readSeed(seed))
  if (read.entries.clients.length > 0) return read
  return { ...read, entries: { ...read.entries, clients: readSeed({ clients: [SERVICE] }).entries.clients } }
}

/**
 * Returns a `fetch` that makes calls to the server's own origin with `own.fetch`, and other calls with
 * `others`. Calls to the fake providers below `/dev/` get the control token.
 */
const withOwn =
  (others: Outbound, own: { origin: string; fetch: Outbound }, token: string): Outbound =>
  (url, init) => {
    const to = URL.parse(String(url))
    if (to?.origin !== own.origin) return others(url, init)
    const headers = new Headers(init.headers)
    if (to.pathname.startsWith('/dev/')) headers.set(CONTROL_HEADER, token)
    return own.fetch(url, { ...init, headers })
  }

const ownMasterKey = (data_dir: string) => {
  const file = join(data_dir, 'master.key')
  mkdirSync(data_dir, { recursive: true, mode: 0o700 })
  if (!existsSync(file)) writeFileSync(file, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 })
  return masterKey(Buffer.from(readFileSync(file, 'utf8'), 'base64'))
}
