import { connect, fromNewNetwork, get, header, post } from './connection.ts'
import { adminTokenOf, createAt, paths, startGatehouse } from './gatehouse.ts'
import { median } from './load.ts'
import { freshDirectory, removeDirectory } from './server-process.ts'
import { authorizePath, fillForm, REDIRECT_URI, USER } from './target.ts'

/** Failures that an account may have before it is throttled. */
const EACH = 5

/** Median response time in ms after a wrong name or password, by kind of account. */
export type Refusals = Record<'unknown' | 'wrong' | 'disabled' | 'foreign', number>

/**
 * Measures refused logins of each kind in turn, each from its own network. The results show whether an
 * attacker can find out user names by response times (O-34).
 */
export const measureRefusals = async (rounds: number): Promise<Refusals> => {
  const directory = await freshDirectory()
  const server = await startGatehouse(directory)
  try {
    const create = createAt(server, await adminTokenOf(server))
    const { id: organization_id } = await create('/organizations', { name: 'Elsewhere', slug: 'elsewhere' })
    const person = { first_name: 'Ben', last_name: 'Ch', password: USER.password }
    for (let i = 0; i < Math.ceil(rounds / EACH); i++)
      for (const [kind, more] of [
        ['wrong', {}],
        ['disabled', { enabled: false }],
        ['foreign', { organization_id }],
      ] as const)
        await create('/users', {
          ...person,
          ...more,
          username: `${kind}-${i}`,
          email: `${kind}-${i}@example.com`,
        })
    const client_id = 'web'
    const grant_types = ['authorization_code']
    const client = {
      client_id,
      name: client_id,
      type: 'confidential',
      grant_types,
      scopes: ['openid', 'profile', 'email'],
    }
    await create('/clients', { ...client, redirect_uris: [REDIRECT_URI] })

    const connection = await connect(server.port)
    const page = await connection.send(get(authorizePath({ paths }, client_id)))
    const cookie = header(page.head, 'set-cookie')?.split(';', 1)[0] ?? ''
    const { action, fields } = fillForm(page.body)
    const times: Record<keyof Refusals, number[]> = { unknown: [], wrong: [], disabled: [], foreign: [] }
    const kinds = Object.keys(times) as (keyof Refusals)[]
    for (let round = 0; round < rounds; round++)
      // The order rotates, so that no kind always comes first.
      for (const kind of [...kinds.slice(round % 4), ...kinds.slice(0, round % 4)]) {
        const attempt = {
          ...fields,
          username: `${kind}-${Math.floor(round / EACH)}`,
          password: 'Wrong-Horse-7-Battery',
        }
        const bytes = post(action, attempt, { cookie, ...fromNewNetwork() })
        const began = Bun.nanoseconds()
        const { status, body } = await connection.send(bytes)
        times[kind].push((Bun.nanoseconds() - began) / 1e6)
        if (status !== 401) throw new Error(`Expected 401, got ${status}:\n${body.slice(0, 1000)}`)
      }
    connection.close()
    return Object.fromEntries(kinds.map(kind => [kind, median(times[kind])])) as Refusals
  } finally {
    await server.stop()
    await removeDirectory(directory)
  }
}
