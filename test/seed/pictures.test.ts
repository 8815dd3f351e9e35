import { expect, test } from 'bun:test'
import { applySeed } from '#src/seed/apply.ts'
import { exportSeed, renderSeed } from '#src/seed/export.ts'
import { parseSeed, readSeed, SeedError } from '#src/seed/read.ts'
import { type Json, startApp, type TestApp } from '#test/support/app.ts'
import { jpeg, png, pngChunk } from '#test/support/photos.ts'

const uri = (bytes: Buffer) => `data:image/png;base64,${bytes.toString('base64')}`
const apply = (app: TestApp, picture: unknown, more: Json = {}) =>
  applySeed(
    app.context,
    readSeed({ users: [{ username: 'ada', email: 'ada@example.com', picture, ...more }] }),
  )
const stored = (app: TestApp) => app.context.store.read(async q => q.select().from(q.tables.pictures))
const fieldsOf = async (app: TestApp) =>
  (await app.events()).map(({ type, metadata }) => [type, metadata.fields])
const mistakeOf = async (work: Promise<unknown>) => {
  const error = await work.catch((reason: unknown) => reason)
  return error instanceof SeedError ? error.mistakes : error
}

test('PEO-35 RUN-26 a file gives a user a picture without metadata, keeps, replaces and removes it', async () => {
  const app = await startApp()
  await app.events()
  await apply(app, uri(png(8, 8, pngChunk('tEXt', Buffer.from('52.5N 13.4E')))))
  expect(await fieldsOf(app)).toEqual([
    ['user.created', undefined],
    ['user.updated', ['picture']],
  ])
  const [row] = await stored(app)
  expect(Buffer.from(row?.body ?? []).equals(png())).toBe(true)
  expect(await apply(app, uri(png()))).toEqual([])
  expect(await apply(app, undefined)).toEqual([])
  expect((await stored(app)).length).toBe(1)
  expect(await apply(app, uri(png(9, 9)))).toMatchObject([{ action: 'update', fields: ['picture'] }])
  expect(await apply(app, null)).toMatchObject([{ action: 'update', fields: ['picture'] }])
  expect(await stored(app)).toEqual([])
  expect(await fieldsOf(app)).toEqual([
    ['user.updated', ['picture']],
    ['user.updated', ['picture']],
  ])
})

test('PEO-34 a file with another picture is refused whole, and says why', async () => {
  const app = await startApp()
  const refused: [unknown, string][] = [
    ['https://images.example/ada.png', 'A PNG, JPEG or WebP picture'],
    [uri(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')), 'not a still PNG'],
    [uri(png(1025, 8)), 'exceeds 1024 pixels in width or height'],
    [uri(Buffer.alloc(256 * 1024 + 1)), 'larger than 256 KiB'],
    [7, 'A PNG, JPEG or WebP picture'],
  ]
  for (const [picture, message] of refused)
    expect(await mistakeOf(apply(app, picture))).toMatchObject([
      { path: 'users[0].picture', message: expect.stringContaining(message) },
    ])
  expect((await app.admin('GET', '/users')).body.data).toEqual([])
})

test('RUN-26 an export has pictures where they are asked for, and another instance takes them', async () => {
  const app = await startApp()
  await apply(app, uri(jpeg), { id: 'usr_0192d3a4-5b6c-7d8e-9f00-112233445566' })
  const plain = await exportSeed(app.context, {})
  expect(JSON.stringify(plain)).not.toContain('picture')
  const whole = await exportSeed(app.context, { pictures: true })
  const copy = await startApp()
  await applySeed(copy.context, parseSeed(renderSeed(whole), 'export.yaml'))
  expect(await stored(copy)).toEqual(await stored(app))
  expect(await exportSeed(copy.context, { pictures: true })).toEqual(whole)
})
