import { expect, setSystemTime, test } from 'bun:test'
import type { Call } from '#src/http/call.ts'
import { logRequest } from '#src/http/request-log.ts'
import { type LogLevel, openLogger } from '#src/lib/log.ts'

const open = (level: LogLevel = 'info') => {
  const lines: string[] = []
  return { lines, log: openLogger(level, line => void lines.push(line)) }
}

test('a line begins with level and time, keeps the order of the fields and ends with the text', () => {
  const { lines, log } = open()
  setSystemTime(Date.UTC(2026, 0, 15, 12))
  log.info({ event: 'a', none: undefined, list: [1, null] }, 'a "text"\n')
  log.warn({ b: '\u2028' })
  log.error({})
  setSystemTime()
  const time = '"time":"2026-01-15T12:00:00.000Z"'
  expect(lines).toEqual([
    `{"level":30,${time},"event":"a","list":[1,null],"msg":"a \\"text\\"\\n"}\n`,
    `{"level":40,${time},"b":"\u2028"}\n`,
    `{"level":50,${time}}\n`,
  ])
})

test('lower levels are not written', () => {
  const levels = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const
  const written = levels.map(level => {
    const { lines, log } = open(level)
    for (const name of ['info', 'warn', 'error'] as const) log[name]({ event: name })
    log.infoJson(',"event":"json"')
    return lines.map(line => JSON.parse(line).event)
  })
  const all = ['info', 'warn', 'error', 'json']
  expect(written).toEqual([all, all, all, ['warn', 'error'], ['error'], []])
})

test('an error has its type, its stack, its plain fields and the messages of its causes', () => {
  const { lines, log } = open()
  const cause = new RangeError('inner')
  const error = new TypeError('outer', { cause })
  Object.assign(error, { code: 'E_OUTER', request: { secret: 'x' }, list: [1] })
  log.error({ err: error, event: 'a' })
  const { err, event, msg } = JSON.parse(lines[0] ?? '')
  expect({ ...err, stack: '' }).toEqual({
    type: 'TypeError',
    message: 'outer: inner',
    stack: '',
    code: 'E_OUTER',
  })
  expect(err.stack).toMatch(/outer.*\n +at .*\ncaused by: .*inner.*\n +at /s)
  expect([event, msg]).toEqual(['a', 'outer'])
})

test('causes in a circle end, and the errors of an AggregateError are named', () => {
  const { lines, log } = open()
  const error = new AggregateError([new Error('one'), 'two'], 'several')
  error.cause = error
  log.error({ err: error }, 'text')
  const { err, msg } = JSON.parse(lines[0] ?? '')
  expect(err.errors).toEqual(['Error: one', 'two'])
  expect(err.message).toStartWith('several: several')
  expect(msg).toBe('text')
})

test('a field with the name of an error is written as it is when it is no error', () => {
  const { lines, log } = open()
  log.error({ err: 'refused' }, 'text')
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ err: 'refused', msg: 'text' })
})

test('the line of a request equals that of log.info', () => {
  const { lines, log } = open()
  const call = { request_id: '0198-1', path: '/a"b\\c\u2028%20' } as Call
  const answered = { method: 'GET', status: 200, ms: 1.25 }
  setSystemTime(1)
  logRequest(log, call, answered)
  log.info({
    event: 'request',
    request_id: call.request_id,
    method: 'GET',
    path: call.path,
    status: 200,
    ms: 1.25,
  })
  setSystemTime()
  expect(lines[0]).toBe(lines[1] as string)
  logRequest(log, { ...call, path: `/${'x'.repeat(16_000)}` }, answered)
  expect(JSON.parse(lines[2] ?? '').path).toBe(`/${'x'.repeat(1_023)}`)
})
