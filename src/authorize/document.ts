import type { Context } from '#src/context.ts'
import { findDocument } from '#src/directory/clients/documents.ts'
import { asClientRow } from '#src/directory/clients/dynamic.ts'
import { readDynamicClient } from '#src/directory/clients/dynamic-store.ts'
import { noteDocument } from '#src/directory/clients/dynamic-use.ts'
import type { Call } from '#src/http/call.ts'
import { isRedirectOf } from '#src/protocol/oauth/redirect-uri.ts'
import type { StepUser } from './eligible-logins.ts'
import type { Flow } from './flow.ts'
import { refuseRequest } from './refused-request.ts'

/**
 * Returns the flow with its client as the metadata document describes it. The document is read only after the
 * login, so that a request without a login causes no outbound call. Returns the same flow when the client has
 * no document, or when the document has been read already.
 *
 * @throws PageError 400 when the document cannot be used, or lacks the redirect URI; AppError 429 or 503 in
 * the cases of {@link findDocument}
 */
export const withDocument = async <F extends Flow>(
  context: Context,
  call: Call,
  flow: F,
  { user_id, email }: StepUser,
): Promise<F> => {
  if (!flow.client?.from_document || flow.document) return flow
  const { organization } = flow
  const { client_id, redirect_uri } = flow.request
  const stored = await context.store.read(q => readDynamicClient(q, client_id))
  const found = await findDocument(context, client_id, { organization, user_id, stored })
  if (!found) throw await refuseRequest(context, call, 'document_unusable', { client_id, redirect_uri })
  const document = await noteDocument(context, client_id, found, {
    actor: { id: user_id, email },
    organization_id: organization.id,
    client_info: call,
    subject_id: user_id,
  })
  const client = asClientRow(document)
  if (!isRedirectOf(client, redirect_uri))
    throw await refuseRequest(context, call, 'redirect_uri_not_registered', {
      client_id,
      redirect_uri,
      client,
    })
  return { ...flow, client, document }
}
