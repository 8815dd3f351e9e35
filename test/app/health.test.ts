/** Tests the text of a health check that throws an error. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { ConfigError } from '#src/config.ts'
import { type Check, type Inspected, runCheck } from '#src/operations/health.ts'

const failing = (check: Check) => runCheck(check, {} as Inspected)

test('CON-23 a check that throws says what it means, before the error of the system', async () => {
  const missing: Check = () => {
    throw new Error(readFileSync('/none/such', 'utf8'))
  }
  expect(await failing(missing)).toEqual({ state: 'fail', text: '/none/such cannot be read (ENOENT)' })
  expect(await failing(() => Promise.reject(new Error('database is locked')))).toEqual({
    state: 'fail',
    text: 'the check could not be made (database is locked)',
  })
  const text = 'tls_cert: the certificate in a.pem has expired.'
  expect(await failing(() => Promise.reject(new ConfigError(text)))).toEqual({ state: 'fail', text })
})
