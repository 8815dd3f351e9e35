import type { Context } from '#src/context.ts'
import { readAttributes } from '#src/directory/users/attribute-form.ts'
import { updateUser } from '#src/directory/users/service.ts'
import type { Call } from '#src/http/call.ts'
import { advance, openDueStep } from './advance.ts'
import { attributesPage, findMissing } from './attributes-page.ts'

/**
 * Stores required attributes. The user needs no permission, because the organization asks for the attributes.
 */
export const postAttributes =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const opened = await openDueStep(context, call, 'attributes')
    if (opened instanceof Response) return opened
    const { browser, flow, form, login } = opened
    const { user, missing } = await findMissing(context, flow, login)
    const { changes, errors } = readAttributes(missing, user.attributes, form)
    if (Object.keys(errors).length > 0) return attributesPage(context, browser, flow, login, { form, errors })
    const by = { actor: { id: user.id, email: user.email }, client_info: call }
    await updateUser(context, user.id, { own_attributes: changes }, by)
    return advance(context, browser, flow, 'post')
  }
