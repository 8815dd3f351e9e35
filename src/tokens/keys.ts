import { createPrivateKey, createPublicKey, hash, type KeyObject } from 'node:crypto'
import type { Core, OpenedToken, PublishedKeys, SigningKeys, TokenType } from '#src/context.ts'
import type { SigningAlg } from '#src/protocol/oidc/signing-algs.ts'
import { StorageError } from '#src/storage/errors.ts'
import { orLast } from '#src/storage/or-last.ts'
import { type KeyRow, listKeys, publishedAt } from './key-store.ts'
import { ensureKey } from './rotation.ts'
import { signWith, verifyWith } from './signature.ts'
import { signingThread } from './signing-thread.ts'

interface Key extends KeyRow {
  /** The encoded JOSE headers of the tokens that the key signs. */
  headers: Record<TokenType, string>
  publicKey: KeyObject
  privateKey: KeyObject
}

/**
 * The keys in use from `since` to `until`. At `until`, one of the keys begins to sign or leaves the key set.
 */
interface KeyRing {
  since: number
  until: number
  /** The signing key of each algorithm. */
  signing: Map<SigningAlg, Key>
  /** Keys by encoded token header. Only headers that this server writes are present. */
  headers: Map<string, { key: Key; typ: TokenType; isPublished: boolean }>
  published: PublishedKeys
}

/** Token types that `open` accepts. Logout tokens are refused, because only clients read them. */
const TYPES = ['at+jwt', 'JWT'] as const
/**
 * Maximum number of verified tokens whose hashes are kept in memory. Clients present the same token many
 * times, and a kept hash saves each further verification.
 */
const MAX_REMEMBERED = 10_000

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

const makeRing = (keys: Key[], now: number): KeyRing => {
  const moments = keys.flatMap(({ active_at, expires_at }) => [active_at, expires_at ?? active_at])
  const isPublished = publishedAt(now)
  const known = keys.filter(isPublished)
  const signing = new Map<SigningAlg, Key>()
  // The first key signs even when the clock was set back to a time before its `active_at`.
  for (const key of known) if (key.active_at <= now || !signing.has(key.alg)) signing.set(key.alg, key)
  const body = JSON.stringify({
    keys: known.map(({ id, alg, public_jwk }) => ({ ...public_jwk, kid: id, alg, use: 'sig' })).reverse(),
  })
  return {
    since: Math.max(Number.NEGATIVE_INFINITY, ...moments.filter(moment => moment <= now)),
    until: Math.min(Number.POSITIVE_INFINITY, ...moments.filter(moment => moment > now)),
    signing,
    headers: new Map(
      keys.flatMap(key =>
        TYPES.map(typ => [key.headers[typ], { key, typ, isPublished: isPublished(key) }] as const),
      ),
    ),
    published: { body, etag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"` },
  }
}

/**
 * Decrypts a private key with the instance key.
 *
 * @throws StorageError when the key cannot be decrypted. A damaged key is not skipped, because valid tokens
 * that it signed would then be refused without a visible cause.
 */
const openKey = ({ master }: Core, row: KeyRow): Key => {
  try {
    const pkcs8 = master.open(row.private_key, row.id)
    const privateKey = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
    const header = { alg: row.alg, kid: row.id }
    const headerOf = (typ: TokenType) => encode({ ...header, typ })
    const headers = {
      'at+jwt': headerOf('at+jwt'),
      'logout+jwt': headerOf('logout+jwt'),
      JWT: headerOf('JWT'),
    }
    return { ...row, headers, privateKey, publicKey: createPublicKey(privateKey) }
  } catch {
    throw new StorageError(`The signing key ${row.id} cannot be opened with this master key.`)
  }
}

/**
 * Returns the keys in memory. The keys are reloaded after a commit that changes keys. They are also reloaded
 * after a commit of another process if the topics of the commit are unknown. A published key begins to sign
 * at its `active_at`, without a commit.
 */
const openKeyRing = (base: Core) => {
  const { store, clock } = base
  let keys: Key[] | undefined
  let ring: KeyRing | undefined
  /** The last ring, which {@link forget} keeps. */
  let last: KeyRing | undefined
  let generation = 0
  const forget = (): void => {
    generation++
    keys = undefined
    ring = undefined
  }
  store.onChange(topics => {
    if (!topics || topics.has('keys')) forget()
  })
  let opened = new Map<string, Key>()

  /** Returns the current ring if the keys are loaded. */
  const present = (): KeyRing | undefined => {
    const now = clock.now()
    if (ring && now >= ring.since && now < ring.until) return ring
    ring = keys && makeRing(keys, now)
    last = ring ?? last
    return ring
  }
  const load = async (): Promise<KeyRing> => {
    for (;;) {
      const ready = present()
      if (ready) return ready
      const begun = generation
      const rows = await store.read(listKeys)
      const loaded = rows.map(row => {
        const known = opened.get(row.id)
        // In development mode another key can be pinned under the same id.
        const isSame = known && Buffer.compare(known.private_key, row.private_key) === 0
        return { ...(isSame ? known : openKey(base, row)), ...row }
      })
      opened = new Map(loaded.map(key => [key.id, key]))
      if (begun === generation) keys = loaded
    }
  }
  /**
   * Returns the key set. During an outage of the database this is the key set of `last`, because services
   * must still be able to verify tokens. On PostgreSQL an outage also removes `keys` and `ring` from memory,
   * because notifications may be lost (storage/postgres/changes.ts).
   */
  const published = async (): Promise<PublishedKeys> => {
    const current = await (last ? orLast(load(), last) : load())
    return current.published
  }
  return { present, load, published, forget }
}

/**
 * Generates the keys of RS256 and of the algorithms in the settings at a first start. {@link openKeys} has
 * already made the ES256 key.
 */
const firstKeys = ({ config, log }: Core, ensure: (alg: SigningAlg) => Promise<void>) => {
  const algs = new Set<SigningAlg>(['RS256', config.access_token_alg, config.id_token_alg])
  let isMade = false
  let making: Promise<void> | undefined
  return {
    isMade: () => isMade,
    make: (): Promise<void> => {
      making ??= Promise.all([...algs].map(ensure)).then(
        () => {
          isMade = true
        },
        // A key that could not be generated here is generated when the first token needs it.
        error => log.error({ err: error }, 'generating a signing key failed'),
      )
      return making
    },
  }
}

/**
 * Opens the signing keys. The ES256 key is available at once. The keys of RS256 and of the algorithms in the
 * settings are generated after a first start, and calls that need them wait. A key of another algorithm is
 * generated when a client or an API is registered with the algorithm. rotation.ts decides when keys change.
 *
 * @param isLate true for development servers and for commands, because both often end soon. The keys of a
 * first start are then generated at the first call that needs one, because the RS256 key takes as much CPU
 * time as the rest of the start.
 */
export const openKeys = async (
  base: Core,
  isLate = false,
): Promise<SigningKeys & { ready(): Promise<void> }> => {
  const ring = openKeyRing(base)
  await ensureKey(base, 'ES256')
  // Another copy may have made the key, and its notification may still be on the way, so the ring is
  // reloaded.
  const ensure = (alg: SigningAlg): Promise<void> => ensureKey(base, alg).then(ring.forget)
  const first = firstKeys(base, ensure)
  if (!isLate) void first.make()
  await ring.load()

  /** The keys that verified tokens, by the hash of the token. */
  const verified = new Map<string, KeyObject>()
  const remember = (digest: string, by: KeyObject): void => {
    verified.set(digest, by)
    if (verified.size <= MAX_REMEMBERED) return
    for (const oldest of verified.keys()) {
      verified.delete(oldest)
      break
    }
  }

  const signNow = (key: Key, claims: object, typ: TokenType): string | Promise<string> => {
    const input = `${key.headers[typ]}.${encode(claims)}`
    if (key.alg === 'ES256') return `${input}.${signWith(key.privateKey, key.alg, input)}`
    const signature = signingThread.sign(key.id, key.privateKey, key.alg, input)
    return typeof signature === 'string'
      ? `${input}.${signature}`
      : signature.then(made => `${input}.${made}`)
  }

  const signingKey = async (alg: SigningAlg): Promise<Key> => {
    const key = (await ring.load()).signing.get(alg)
    if (key) return key
    await first.make()
    await ensure(alg)
    const made = (await ring.load()).signing.get(alg)
    if (!made) throw new Error(`no key signs ${alg}`)
    return made
  }

  const openToken = (
    { headers }: KeyRing,
    token: string,
    by: 'published' | 'any',
  ): OpenedToken | undefined => {
    const [end, last] = [token.indexOf('.'), token.lastIndexOf('.')]
    const known = headers.get(token.slice(0, end))
    if (!known || token.indexOf('.', end + 1) !== last) return undefined
    if (by === 'published' && !known.isPublished) return undefined
    const { key, typ } = known
    const digest = hash('sha256', token, 'base64url')
    if (verified.get(digest) !== key.publicKey) {
      if (!verifyWith(key.publicKey, key.alg, token.slice(0, last), token.slice(last + 1))) return undefined
      remember(digest, key.publicKey)
    }
    return {
      alg: key.alg,
      typ,
      claims: JSON.parse(Buffer.from(token.slice(end + 1, last), 'base64url').toString()),
    }
  }

  return {
    ready: first.make,
    sign(claims, alg, typ) {
      const key = ring.present()?.signing.get(alg)
      return key ? signNow(key, claims, typ) : signingKey(alg).then(made => signNow(made, claims, typ))
    },
    open(token, by = 'published') {
      const ready = ring.present()
      return ready
        ? Promise.resolve(openToken(ready, token, by))
        : ring.load().then(loaded => openToken(loaded, token, by))
    },
    published() {
      const present = first.isMade() ? ring.present() : undefined
      return present?.published ?? first.make().then(ring.published)
    },
  }
}
