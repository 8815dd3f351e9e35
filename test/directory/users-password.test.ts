import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { commonPasswords } from '#src/directory/users/common-passwords.ts'
import {
  checkChosen,
  checkPolicy,
  hashPassword,
  isKnownHash,
  needsRehash,
  openHashes,
  verifyPassword,
} from '#src/directory/users/password.ts'
import type { AppError } from '#src/lib/app-error.ts'
import { fairQueue, type HashLane } from '#src/lib/fair-queue.ts'
import { openMetrics } from '#src/lib/metrics.ts'
import { readSeed } from '#src/seed/read.ts'

const lane: HashLane = { work: 'login', organization: 'org_default' }
const context = {
  config: { argon2_memory: 64, argon2_time: 1 },
  hashes: openHashes(openMetrics(), 1),
  trace: <T>(_: string, work: () => T): T => work(),
}
const policy = {
  min_length: 8,
  require_uppercase: true,
  require_lowercase: true,
  require_digit: true,
  require_special: true,
  refuse_common: true,
}
const lax = {
  min_length: 1,
  require_uppercase: false,
  require_lowercase: false,
  require_digit: false,
  require_special: false,
  refuse_common: true,
}
const codes = (details: { code: string }[]) => details.map(({ code }) => code)

describe('hashes', () => {
  test('USR-07 are PHC strings of argon2id with the parameters of the settings', async () => {
    const hash = await hashPassword(context, 'secret', lane)
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=64,t=1,p=1\$/)
    expect(await verifyPassword(context, hash, 'secret', lane)).toBe(true)
    expect(await verifyPassword(context, hash, 'Secret', lane)).toBe(false)
    expect(await verifyPassword(context, hash, '', lane)).toBe(false)
  })

  test('weaker than the settings, or of another kind, are recomputed', async () => {
    const hash = await hashPassword(context, 'secret', lane)
    expect(needsRehash(context, hash)).toBe(false)
    expect(needsRehash({ config: { argon2_memory: 65, argon2_time: 1 } }, hash)).toBe(true)
    expect(needsRehash({ config: { argon2_memory: 64, argon2_time: 2 } }, hash)).toBe(true)
    expect(needsRehash({ config: { argon2_memory: 32, argon2_time: 1 } }, hash)).toBe(false)
    expect(needsRehash(context, await Bun.password.hash('x', { algorithm: 'bcrypt', cost: 4 }))).toBe(true)
    expect(needsRehash(context, hash.replace('$argon2id', '$argon2i'))).toBe(true)
  })

  test('from other systems verify: argon2, and bcrypt, which reads 72 bytes', async () => {
    // The bcrypt hashes are test vectors of crypt_blowfish: https://github.com/openwall/crypt_blowfish
    // (wrapper.c).
    const known = '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'
    expect(await verifyPassword(context, known, 'U*U', lane)).toBe(true)
    const long = '$2a$05$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui'
    const text = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
    expect(await verifyPassword(context, long, `${text}chars after 72 are ignored`, lane)).toBe(true)
    const argon2i = await Bun.password.hash('secret', { algorithm: 'argon2i', memoryCost: 64, timeCost: 1 })
    expect(await verifyPassword(context, argon2i, 'secret', lane)).toBe(true)
  })

  const argon2 = (parameters: string, salt = 'A'.repeat(22), tag = 'A'.repeat(43)) =>
    `$argon2id$v=19$${parameters}$${salt}$${tag}`
  const bcrypt = (rounds: string, rest = '.'.repeat(53)) => `$2b$${rounds}$${rest}`

  test.each([
    argon2('m=8,t=0,p=1'),
    argon2('m=0,t=1,p=1'),
    argon2('m=8,t=1,p=0'),
    argon2('m=8,t=1,p=1', 'A'.repeat(13)),
    argon2('m=8,t=1,p=1', 'A'.repeat(22), 'A'.repeat(17)),
    argon2('m=8,t=1,p=1', `${'A'.repeat(21)}_`),
    argon2('m=8,t=1,p=1', `${'A'.repeat(21)}B`),
    bcrypt('00'),
    bcrypt('03'),
    bcrypt('04', `${'.'.repeat(52)}_`),
    bcrypt('04', `${'.'.repeat(52)}/`),
    bcrypt('04', `${'.'.repeat(21)}/${'.'.repeat(31)}`),
  ])('that the runtime cannot verify are refused in a seed file, and match nothing: %s', async hash => {
    await expect(Bun.password.verify('secret', hash)).rejects.toThrow()
    const users = [{ username: 'ann', email: 'ann@example.com', password_hash: hash }]
    expect(readSeed({ users }).mistakes.map(({ path }) => path)).toEqual(['users[0].password_hash'])
    expect(await verifyPassword(context, hash, 'secret', lane)).toBe(false)
  })

  test('of a stored cost that the runtime cannot compute do not stop the logins of others', async () => {
    const costs = ['$2b$03$', '$argon2id$v=19$m=8,t=0,p=1$', '$2b$04$']
    const hash = await hashPassword(context, 'secret', lane)
    expect(await verifyPassword(context, hash, 'secret', lane, costs)).toBe(true)
    expect(await verifyPassword(context, null, 'secret', lane, costs)).toBe(false)
  })

  test.each([
    argon2('m=1,t=1,p=1'),
    argon2('m=8,t=1,p=2', `${'A'.repeat(21)}Q`, `${'A'.repeat(42)}E`),
    bcrypt('04', `${'.'.repeat(21)}u${'.'.repeat(30)}6`),
  ])('that the runtime can verify are accepted: %s', async hash => {
    expect(isKnownHash(hash)).toBe(true)
    expect(await Bun.password.verify('secret', hash)).toBe(false)
  })

  test('R-16 are computed on threads of lower priority than the main thread', async () => {
    for (let i = 0; i < 3; i++) await hashPassword(context, 'secret', lane)
    const priorities = Map.groupBy(readdirSync('/proc/self/task'), id =>
      readFileSync(`/proc/self/task/${id}/comm`, 'utf8').startsWith('Bun Pool') ? 'pool' : 'others',
    )
    const of = (kind: 'pool' | 'others') => priorities.get(kind)?.map(id => getPriority(Number(id)))
    const own = getPriority(process.pid)
    expect(of('pool')).toContain(Math.min(own + 10, 19))
    expect(new Set(of('others'))).toEqual(new Set([own]))
  })

  test('missing or malformed: false, at the cost of a real one', async () => {
    const verify = Bun.password.verify
    const verified: string[] = []
    Bun.password.verify = (password, hash, ...rest) => {
      verified.push(String(hash))
      return verify(password, hash, ...rest)
    }
    try {
      for (const hash of [null, undefined, '', 'plain', '$argon2id$v=19$m=64,t=1,p=1$x', '$2a$99$x'])
        expect(await verifyPassword(context, hash, 'secret', lane)).toBe(false)
    } finally {
      Bun.password.verify = verify
    }
    expect(verified).toHaveLength(6)
    expect(new Set(verified).size).toBe(1)
    expect(verified[0]).toStartWith('$argon2id$v=19$m=64,t=1,p=1$')
  })
})

describe('O-61', () => {
  test('USR-06 the NFC and NFD forms of a password are equal', async () => {
    const hash = await hashPassword(context, 'Pass\u00e9-word', lane)
    expect(await verifyPassword(context, hash, 'Passe\u0301-word', lane)).toBe(true)
    expect(await verifyPassword(context, hash, 'Passe-word', lane)).toBe(false)
  })

  test('nothing is truncated: the last byte of 1,024 counts', async () => {
    const long = 'x'.repeat(1023)
    const hash = await hashPassword(context, `${long}a`, lane)
    expect(await verifyPassword(context, hash, `${long}a`, lane)).toBe(true)
    expect(await verifyPassword(context, hash, `${long}b`, lane)).toBe(false)
    expect(await verifyPassword(context, hash, `${long}aa`, lane)).toBe(false)
    await expect(hashPassword(context, `${long}aa`, lane)).rejects.toMatchObject({
      code: 'validation_failed',
    })
  })

  test('leading and trailing spaces count', async () => {
    const hash = await hashPassword(context, ' secret ', lane)
    expect(await verifyPassword(context, hash, ' secret ', lane)).toBe(true)
    expect(await verifyPassword(context, hash, 'secret', lane)).toBe(false)
  })
})

describe('the policy', () => {
  test('counts characters as people see them, after NFC', () => {
    expect(codes(checkPolicy(policy, 'Aa1!🦊🦊🦊'))).toEqual(['min_length'])
    expect(codes(checkPolicy(policy, 'Aa1!🦊🦊🦊🦊'))).toEqual([])
    expect(codes(checkPolicy(policy, 'Aa1!e\u0301e\u0301e\u0301'))).toEqual(['min_length'])
  })

  test('recognizes letters and digits of every script', () => {
    expect(codes(checkPolicy(policy, 'Ωμέγα-٣٤'))).toEqual([])
    expect(codes(checkPolicy(policy, 'пароль 12'))).toEqual(['require_uppercase'])
  })

  test('USR-08 each rule can be switched off, but an empty password is refused', () => {
    expect(codes(checkPolicy(lax, 'x'))).toEqual([])
    expect(codes(checkPolicy(lax, ''))).toEqual(['min_length'])
    expect(codes(checkPolicy({ ...lax, min_length: 20 }, 'x'.repeat(19)))).toEqual(['min_length'])
  })

  test('USR-05 at most 1,024 bytes, whatever the policy', () => {
    expect(codes(checkPolicy(lax, 'é'.repeat(512)))).toEqual([])
    expect(codes(checkPolicy(lax, 'é'.repeat(513)))).toEqual(['too_long'])
  })

  test('USR-10 common passwords are refused where a user chooses one, with or without digits and signs after them', () => {
    for (const password of ['password', 'Password1!', 'Qwerty123', 'welcome2026!', '12345678', 'P@ssw0rd'])
      expect([password, codes(checkChosen(lax, password))]).toEqual([password, ['not_common']])
    for (const password of ['correct horse battery', 'Gr8-fjords-ahead', 'passwording-7'])
      expect([password, codes(checkChosen(policy, `${password}A1!`))]).toEqual([password, []])
    expect(checkPolicy(lax, 'password')).toEqual([])
  })

  test('the list has thousands of leaked passwords, and each rule can be switched off', () => {
    expect(commonPasswords().size).toBeGreaterThan(10_000)
    for (const leaked of [
      'trustno1',
      'Mustang',
      'cheyenne',
      'jonathan99!',
      'zxcvbnm',
      'thx1138',
      'willkommen1',
    ])
      expect([leaked, codes(checkChosen(lax, leaked))]).toEqual([leaked, ['not_common']])
    expect(codes(checkChosen({ ...lax, refuse_common: false }, 'password'))).toEqual([])
    const all = codes(checkChosen({ ...policy, min_length: 12 }, ''))
    expect(all).toEqual([
      'min_length',
      'require_uppercase',
      'require_lowercase',
      'require_digit',
      'require_special',
    ])
    for (const rule of ['require_uppercase', 'require_lowercase', 'require_digit', 'require_special'])
      expect(codes(checkPolicy({ ...policy, [rule]: false }, ''))).toEqual(
        ['min_length', ...all.slice(1)].filter(code => code !== rule),
      )
  })
})

describe('R-16 the queue of hashes', () => {
  test('USR-09 runs a limited number at once, queues a limited number in order, and refuses the rest with Retry-After', async () => {
    const queue = fairQueue(2, 6)
    const started: number[] = []
    const finish: (() => void)[] = []
    const jobs = [0, 1, 2, 3, 4, 5].map(i =>
      queue(lane, () => {
        started.push(i)
        return new Promise<number>(resolve => finish.push(() => resolve(i)))
      }).catch((error: AppError) => error),
    )
    const refusal = (await jobs[5]) as AppError
    expect([refusal.code, refusal.headers['retry-after']]).toEqual(['temporarily_unavailable', '2'])
    expect(started).toEqual([0, 1])
    finish[1]?.()
    await jobs[1]
    await Promise.resolve()
    expect(started).toEqual([0, 1, 2])
    for (let i = 0; i < 5; i++) {
      finish[i]?.()
      await Promise.resolve()
      await new Promise(setImmediate)
    }
    expect(await Promise.all(jobs.slice(0, 5))).toEqual([0, 1, 2, 3, 4])
  })

  test('a failed job frees its place', async () => {
    const queue = fairQueue(1, 1)
    const failing = queue(lane, () => Promise.reject(new Error('no')))
    const next = queue(lane, async () => 'next')
    await expect(failing).rejects.toThrow('no')
    expect(await next).toBe('next')
    expect(await queue(lane, async () => 'again')).toBe('again')
  })

  /** Returns a queue whose only slot is taken, and the order in which the queued jobs run. */
  const heldQueue = (waiting: number) => {
    const queue = fairQueue(1, waiting)
    const { promise, resolve } = Promise.withResolvers<void>()
    const jobs: Promise<unknown>[] = [queue(lane, () => promise)]
    const order: string[] = []
    let refused = 0
    const add = (work: HashLane['work'], organization: string, times: number, network?: string) => {
      for (let i = 0; i < times; i++)
        jobs.push(
          queue(
            { work, organization, network },
            async () => void order.push(`${work} ${organization}`),
          ).catch(() => void refused++),
        )
    }
    const run = async () => {
      resolve()
      await Promise.all(jobs)
      return { order, refused }
    }
    return { add, run }
  }

  test('H-24 reserves places for logins and for each organization: one gets half, two a third each', async () => {
    const { add, run } = heldQueue(12)
    add('change', 'acme', 20)
    add('login', 'acme', 20)
    add('login', 'other', 20)
    add('login', 'third', 1)
    const { order, refused } = await run()
    const count = (text: string) => order.filter(each => each === text).length
    expect(['change acme', 'login acme', 'login other', 'login third'].map(count)).toEqual([6, 6, 3, 1])
    expect(refused).toBe(61 - 16)
  })

  test('H-24 within an organization, a network gets a third of the places left', async () => {
    const { add, run } = heldQueue(108)
    add('login', 'acme', 60, '192.0.2.1')
    add('login', 'acme', 60, '192.0.2.2')
    add('login', 'acme', 60, '192.0.2.3')
    add('login', 'other', 1, '192.0.2.1')
    const { order, refused } = await run()
    expect([order.filter(each => each === 'login acme').length, refused]).toEqual([36 + 12 + 4, 180 - 52])
    expect(order).toContain('login other')
  })

  test('H-24 alternates logins and other work, and the organizations within each', async () => {
    const { add, run } = heldQueue(100)
    add('change', 'acme', 4)
    add('login', 'acme', 2)
    add('login', 'other', 1)
    expect((await run()).order).toEqual([
      'login acme',
      'change acme',
      'login other',
      'change acme',
      'login acme',
      'change acme',
      'change acme',
    ])
  })
})
