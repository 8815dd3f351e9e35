import type { CredentialSource } from './access.ts'

/** What is read of the requests of `node:http`. */
type NodeRequest = {
  headers: Record<string, string | string[] | undefined>
  headersDistinct?: Record<string, string[] | undefined>
}

/** Node keeps the first of two Authorization headers and drops the other; here both count, so that two are refused. */
export const credentialsOf = ({ headers, headersDistinct }: NodeRequest): CredentialSource => ({
  headers: { get: name => [headersDistinct?.[name] ?? headers[name] ?? []].flat().join(', ') },
})
