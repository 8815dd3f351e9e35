/**
 * Measures how much longer a verification takes with the SDK than with jose and an imported key.
 * Usage: `bun test/bench/sdk.ts`.
 */
import { importJWK, jwtVerify } from 'jose'
import { createVerifier } from '#src/resource-server/index.ts'
import { createTestIssuer } from '#src/resource-server/testing.ts'

export type SdkResult = {
  alg: string
  /** Median time of a verification over the rounds, in µs. */
  jose: number
  sdk: number
  /** `sdk` minus `jose` in µs, as the median over the rounds; the limit is 10 µs. */
  overhead: number
}

const ROUNDS = 41
const CALLS = 500

/** Measures jose and the SDK in alternate rounds, so that a disturbance of the machine affects both. */
export async function benchSdk(): Promise<SdkResult[]> {
  const results: SdkResult[] = []
  for (const alg of ['ES256', 'RS256'] as const) {
    const issuer = await createTestIssuer({ alg })
    const verifier = createVerifier(issuer)
    const token = await issuer.token()
    const key = await importJWK(issuer.published[0] ?? {}, alg)
    const bare = () => jwtVerify(token, key, { issuer: issuer.issuer, audience: issuer.audience })
    const ours = () => verifier.verify(token)
    await time(bare)
    await time(ours)
    const rounds: { jose: number; sdk: number }[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const [first, second] =
        round % 2 ? [await time(ours), await time(bare)] : [await time(bare), await time(ours)]
      rounds.push(round % 2 ? { jose: second, sdk: first } : { jose: first, sdk: second })
    }
    results.push({
      alg,
      jose: median(rounds.map(round => round.jose)),
      sdk: median(rounds.map(round => round.sdk)),
      overhead: median(rounds.map(round => round.sdk - round.jose)),
    })
  }
  return results
}

/** Returns the mean time of a call in µs. */
async function time(call: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  for (let i = 0; i < CALLS; i++) await call()
  return ((performance.now() - start) * 1000) / CALLS
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

if (import.meta.main) {
  for (const { alg, jose, sdk, overhead } of await benchSdk()) {
    const [a, b, c] = [jose, sdk, overhead].map(value => value.toFixed(1).padStart(6))
    console.log(`${alg}  jose ${a} µs  sdk ${b} µs  overhead ${c} µs (budget 10)`)
  }
}
