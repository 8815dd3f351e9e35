import { expect, test } from 'bun:test'
import { HOUR, SECOND } from '#src/lib/duration.ts'
import { TokenBuckets } from '#src/lib/token-buckets.ts'

const allowance = { burst: 2, per_second: 1 }

test('a clock that steps back neither fills a bucket nor keeps it empty', () => {
  const buckets = new TokenBuckets(10)
  buckets.take('a', allowance, HOUR, 2)
  expect(buckets.wait('a', allowance, 0, 1)).toBe(SECOND)
  expect(buckets.wait('a', allowance, SECOND, 1)).toBe(0)
  expect(buckets.left('a', allowance, HOUR)).toBe(2)
})

test('each process grants its share, and at least one unit', () => {
  const shares = [1, 2, 4].map(workers => new TokenBuckets(10, workers).left('a', allowance, 0))
  expect(shares).toEqual([2, 1, 1])
})
