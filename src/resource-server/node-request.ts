import type { CredentialSource } from './access.ts'
import { MAX_FORM } from './fetch-json.ts'

/** The properties of a `node:http` request that are used here. */
type NodeRequest = {
  headers: Record<string, string | string[] | undefined>
  headersDistinct?: Record<string, string[] | undefined>
}

/**
 * Returns the headers. If a request has two Authorization headers, Node drops the second from `headers`, but
 * a proxy may have checked only the second. This function joins the two, so that the result is never a valid
 * token.
 */
export const credentialsOf = ({ headers, headersDistinct }: NodeRequest): CredentialSource => ({
  headers: { get: name => [headersDistinct?.[name] ?? headers[name] ?? []].flat().join(', ') },
})

/** The properties of the body of a `node:http` request that are used here. */
type NodeBody = {
  readableEnded: boolean
  body?: unknown
  iterator(options: { destroyOnReturn: boolean }): AsyncIterable<Uint8Array>
}

/**
 * Returns the form of a request. When a body parser has read the body, returns the result of the parser.
 * Otherwise returns the text, or undefined when the text is too long.
 */
export async function readNodeForm(request: NodeBody): Promise<unknown> {
  if (request.readableEnded) return request.body
  const decoder = new TextDecoder()
  let text = ''
  // The iterator must not close the request, which still needs an answer.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > MAX_FORM) return undefined
  }
  return text
}
