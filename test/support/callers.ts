import type { Json, TestApp } from './app.ts'

let made = 0

/** Returns an access token of a client of this organization with these scopes. */
export const callerOf = async (app: TestApp, organization_id: string, scopes: string[]): Promise<string> => {
  const client = await create(app, '/clients', {
    client_id: `caller-${++made}`,
    name: 'Caller',
    type: 'confidential',
    organization_id,
    grant_types: ['client_credentials'],
    scopes,
  })
  return app.tokenOf(client.client_id, client.client_secret)
}

/** Creates a resource by POST to the admin API and returns it. Throws when the status is not 201. */
export const create = async (app: Pick<TestApp, 'admin'>, path: string, body: Json): Promise<Json> => {
  const answer = await app.admin('POST', path, body)
  if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body
}

/** Returns the names of the fields that a 422 refuses, sorted and without duplicates. */
export const refused = ({ status, body }: { status: number; body: Json }): string[] => {
  if (status !== 422) throw new Error(`${status} instead of 422: ${JSON.stringify(body)}`)
  return [...new Set<string>(body.details.map((detail: Json) => detail.field))].sort()
}

/** Reads all rows of a list, page by page. */
export const listAll = async (app: TestApp, path: string, token?: string): Promise<Json[]> => {
  const rows: Json[] = []
  for (let cursor: string | undefined; ; ) {
    const query = `${path.includes('?') ? '&' : '?'}limit=2${cursor ? `&cursor=${cursor}` : ''}`
    const { status, body } = await app.admin('GET', path + query, undefined, token)
    if (status !== 200) throw new Error(`GET ${path}: ${status}`)
    rows.push(...body.data)
    cursor = body.pagination.next_cursor
    if (!cursor) return rows
  }
}
