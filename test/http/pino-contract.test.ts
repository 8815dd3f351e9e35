/**
 * The parts of a pino logger that src/http/request-log.ts uses: `pino.symbols.streamSym`, `timeSym` and
 * `chindingsSym`. pino names them in its documentation without saying what they hold. The line of a request
 * is written through them, because pino's own way costs a tenth of an answer such as the key set.
 */
import { expect, test } from 'bun:test'
import { pino } from 'pino'
import type { Call } from '#src/http/call.ts'
import { logRequest } from '#src/http/request-log.ts'

const open = () => {
  const lines: string[] = []
  const log = pino({ base: { pid: 7, name: 'a "quoted" name' } }, { write: line => void lines.push(line) })
  return { lines, log, part: (symbol: symbol): unknown => Reflect.get(log, symbol) }
}

test('streamSym is the stream, with write', () => {
  const { lines, part } = open()
  const stream = part(pino.symbols.streamSym) as { write(line: string): void }
  stream.write('a line\n')
  expect(lines).toEqual(['a line\n'])
})

test('timeSym is a function that returns the time as JSON after a comma', () => {
  const time = open().part(pino.symbols.timeSym) as () => string
  expect(time()).toMatch(/^,"time":\d{13}$/)
})

test('chindingsSym is the text of all bindings, each after a comma', () => {
  expect(open().part(pino.symbols.chindingsSym)).toBe(',"pid":7,"name":"a \\"quoted\\" name"')
})

test('the line of a request equals that of log.info', () => {
  const { lines, log } = open()
  const call = { request_id: '0198-1', path: '/a"b\\c\u2028%20' } as Call
  const answered = { method: 'GET', status: 200, ms: 1.25 }
  logRequest(log, call, answered)
  const { request_id, path } = call
  const { method, status, ms } = answered
  log.info({ event: 'request', request_id, method, path, status, ms })
  const [ours, theirs] = lines.map(line => line.replace(/"time":\d+/, '"time":0'))
  expect(ours).toBe(theirs as string)
})
