import { expect, test } from 'bun:test'
import { openFaults } from '#src/dev/faults.ts'

test('dev 10: a hanging fault ends for a client that left during the delay', async () => {
  const faults = openFaults()
  faults.add({ endpoint: '/path', hang: true })
  const client = new AbortController()
  const request = new Request('http://localhost/path', { signal: client.signal })
  client.abort()
  const answer = await faults.apply({ request, path: '/path', client_id: undefined }, () => {})
  await expect(answer?.text()).rejects.toThrow()
})
