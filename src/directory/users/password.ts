import { availableParallelism } from 'node:os'
import type { Core } from '#src/context.ts'
import type { PasswordPolicy } from '#src/directory/organizations/schema.ts'
import { type Detail, invalid } from '#src/lib/app-error.ts'
import { type FairQueue, fairQueue, type HashLane } from '#src/lib/fair-queue.ts'
import type { Metrics } from '#src/lib/metrics.ts'
import { shareOf } from '#src/lib/share.ts'
import { isPlain, normalize } from '#src/lib/text.ts'
import { commonPasswords } from './common-passwords.ts'
import { configuredCost, costOf, dummyOf, type HashSettings } from './hash-costs.ts'
import { lowerHashThreads } from './hash-threads.ts'

/**
 * Maximum bytes of a password as UTF-8, after NFC. People do not type longer passphrases, and a password of
 * this length is cheap to normalize.
 */
export const MAX_PASSWORD_BYTES = 1024

/**
 * Returns the password in NFC (NIST SP 800-63B section 3.1.1.2), so that the password is the same on every
 * keyboard.
 */
export const normalizePassword = (password: string): string => normalize(password, 'NFC')

const tooLong = (normalized: string): boolean => Buffer.byteLength(normalized) > MAX_PASSWORD_BYTES

const detail = (code: string, message: string): Detail => ({ field: 'password', code, message })

const LENGTH = detail('too_long', `At most ${MAX_PASSWORD_BYTES} bytes of UTF-8 are allowed.`)

/**
 * Returns a detail for each rule that a new password breaks. The list is empty when the password is allowed.
 */
export const checkPolicy = (policy: PasswordPolicy, password: string): Detail[] => {
  const text = normalizePassword(password)
  const min_length = Math.max(policy.min_length, 1)
  const rules: [broken: boolean, code: string, message: string][] = [
    [[...text].length < min_length, 'min_length', `At least ${min_length} characters are needed.`],
    [
      policy.require_uppercase && !/\p{Lu}/u.test(text),
      'require_uppercase',
      'At least one uppercase letter is needed.',
    ],
    [
      policy.require_lowercase && !/\p{Ll}/u.test(text),
      'require_lowercase',
      'At least one lowercase letter is needed.',
    ],
    [policy.require_digit && !/\p{Nd}/u.test(text), 'require_digit', 'At least one digit is needed.'],
    [
      // A special character is neither a letter nor a digit in any script. A space counts as special.
      policy.require_special && !/[^\p{L}\p{N}]/u.test(text),
      'require_special',
      'At least one character that is neither letter nor digit is needed.',
    ],
  ]
  const broken = rules.flatMap(([isBroken, code, message]) => (isBroken ? [detail(code, message)] : []))
  return tooLong(text) ? [...broken, LENGTH] : broken
}

/**
 * Returns the details of `checkPolicy`. Adds a detail when the policy refuses common passwords and the
 * password is common, and a detail when the password contains control characters. A common password that is
 * followed by up to six digits or symbols counts as common too (NIST SP 800-63B section 3.1.1.2,
 * https://pages.nist.gov/800-63-4/sp800-63b.html).
 */
export const checkChosen = (policy: PasswordPolicy, password: string): Detail[] => {
  const text = normalizePassword(password).toLowerCase()
  const common =
    policy.refuse_common &&
    (commonPasswords().has(text) || commonPasswords().has(text.replace(/[^\p{L}]{1,6}$/u, '')))
  return [
    ...checkPolicy(policy, password),
    ...(common ? [detail('not_common', 'This password is too common.')] : []),
    ...(isPlain(password) ? [] : [detail('control', 'Control characters are not allowed.')]),
  ]
}

/**
 * Returns the hash queue of this process. The server has `workers` processes, which share all cores except
 * one. That core is left for other work. Each process has a share of at least one core. For each core of its
 * share, it lets 128 jobs of each kind of work wait, which is a few seconds of work.
 */
export const openHashes = (metrics: Metrics, workers: number): FairQueue => {
  const slots = shareOf(availableParallelism() - 1, workers)
  const queue = fairQueue(slots, slots * 128)
  metrics.gauge('gatehouse_hash_queue', 'Passwords waiting to be hashed.', queue.waiting)
  return queue
}

type Hashing = HashSettings & Pick<Core, 'hashes' | 'trace'>

const hashed = <T>({ hashes, trace }: Hashing, lane: HashLane, job: () => Promise<T>): Promise<T> =>
  trace('password.hash', () =>
    hashes(lane, () => {
      const result = job()
      lowerHashThreads()
      return result
    }),
  )

/**
 * Returns a PHC string (argon2id). `config.ts` has the default memory and passes, and the reason for them.
 *
 * @throws AppError 422 when the password has more than 1,024 bytes, 503 `temporarily_unavailable` when too
 * many jobs wait
 */
export const hashPassword = async (context: Hashing, password: string, lane: HashLane): Promise<string> => {
  const { config } = context
  const text = normalizePassword(password)
  if (tooLong(text)) throw invalid(LENGTH)
  return hashed(context, lane, () =>
    Bun.password.hash(text, {
      algorithm: 'argon2id',
      memoryCost: config.argon2_memory,
      timeCost: config.argon2_time,
    }),
  )
}

/** True for base64 without padding whose unused bits are zero. The runtime refuses other texts. */
const isBase64 = (text: string): boolean =>
  Buffer.from(text, 'base64').toString('base64').replace(/=+$/, '') === text

const isWithin = (text: string | undefined, min: number, max: number): boolean =>
  Number(text) >= min && Number(text) <= max

/**
 * True for PHC argon2 and bcrypt hashes that the runtime can verify, including those of other systems. The
 * runtime throws for a parameter below a minimum, and for a salt or tag that is not exactly encoded. A hash
 * with a parameter above a maximum is refused, because each login would compute a hash with this parameter.
 * The settings have the same maximum for the memory and the time of argon2.
 */
export const isKnownHash = (text: string): boolean => {
  const [, memory, time, lanes, salt = '', tag = ''] =
    /^\$argon2(?:id|i|d)\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([^$]{11,})\$([^$]{16,})$/.exec(text) ?? []
  if (tag)
    return (
      isWithin(memory, 1, 1_048_576) &&
      isWithin(time, 1, 16) &&
      isWithin(lanes, 1, 16) &&
      isBase64(salt) &&
      isBase64(tag)
    )
  // In bcrypt's base64 the last character of the salt has four unused bits. The last character of the tag has
  // two unused bits.
  const [, rounds] = /^\$2[aby]\$(\d\d)\$[\w./]{21}[.Oeu][\w./]{30}[.CGKOSWaeimquy26]$/.exec(text) ?? []
  return isWithin(rounds, 4, 15) && !text.includes('_')
}

/**
 * Verifies a password. Returns false when `hash` is missing, because the user is unknown or has no password.
 *
 * `costs` are the costs of all stored hashes. The function computes one hash with each of these costs, and
 * one with the configured cost. The time then reveals nothing about the stored hash, even when stored hashes
 * have different costs after a change of the settings or an import. One hash of the highest cost would not
 * suffice, because the times of argon2 and bcrypt cannot be equalized exactly. If `costs` is empty and the
 * user has a password, only one hash is computed, with the cost of the stored hash. An empty or overlong
 * password is refused before any hash is computed, whether or not the user exists.
 *
 * @throws AppError 503 `temporarily_unavailable` when too many jobs wait
 */
export const verifyPassword = async (
  context: Hashing,
  hash: string | null | undefined,
  password: string,
  lane: HashLane,
  costs: readonly string[] = [],
): Promise<boolean> => {
  const text = normalizePassword(password)
  if (text === '' || tooLong(text)) return false
  const stored = hash && isKnownHash(hash) ? hash : undefined
  const own = stored && costOf(stored)
  // An earlier version may have stored a cost that the runtime cannot compute. Such a cost is left out.
  const all = new Set([configuredCost(context), ...costs.filter(cost => isKnownHash(dummyOf(cost)))])
  // Callers omit `costs` only for a user who is already signed in. The time may then depend on that user's
  // own hash.
  if (own && costs.length === 0) all.clear()
  if (own) all.add(own)
  return hashed(context, lane, async () => {
    let matches = false
    for (const cost of all) {
      // bcrypt uses only the first 72 bytes of a password. Bun would first shorten a longer password with
      // another hash function. The systems that made the imported hashes truncate the password, so this code
      // truncates it too.
      const given = cost.startsWith('$2') ? Buffer.from(text).subarray(0, 72) : text
      const isRight = await Bun.password.verify(given, cost === own && stored ? stored : dummyOf(cost))
      if (isRight && cost === own) matches = true
    }
    return matches
  })
}

/**
 * True for a hash with less memory or time than configured, and for a hash other than argon2id. The login
 * then hashes the password again.
 */
export const needsRehash = ({ config }: HashSettings, hash: string): boolean => {
  const [, memory, time] = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=\d+\$/.exec(hash) ?? []
  return Number(memory ?? 0) < config.argon2_memory || Number(time ?? 0) < config.argon2_time
}

/**
 * Returns the `password_changed_at` of a password that is set at `at` (ms). The time increases with each
 * change, even within a millisecond or when the clock goes back, because `confirmProof` detects a change by
 * comparing the times.
 */
export const changedAt = ({ password_changed_at }: { password_changed_at: number }, at: number): number =>
  Math.max(at, password_changed_at + 1)
