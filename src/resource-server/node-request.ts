import type { CredentialSource } from './access.ts'

/** The properties used of a `node:http` request. */
type NodeRequest = {
  headers: Record<string, string | string[] | undefined>
  headersDistinct?: Record<string, string[] | undefined>
}

/**
 * Returns the headers. Node drops the second of two Authorization headers; here both are joined, so that the
 * request is refused.
 */
export const credentialsOf = ({ headers, headersDistinct }: NodeRequest): CredentialSource => ({
  headers: { get: name => [headersDistinct?.[name] ?? headers[name] ?? []].flat().join(', ') },
})
