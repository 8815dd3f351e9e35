import type { Context } from '#src/context.ts'
import { type AdminRoute, route } from '#src/http/guard.ts'
import { answerPage } from '#src/http/list.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { countAll } from '#src/storage/counts.ts'
import { takeAssets } from './assets.ts'
import { LooksPreview, PreviewLooks, sealLooks } from './preview.ts'
import {
  CreateOrganization,
  ListOrganizations,
  OrganizationAnswer,
  OrganizationList,
  organizationAnswer,
  organizationItem,
  UpdateOrganization,
} from './schema.ts'
import {
  createOrganization,
  deleteOrganization,
  getOrganization,
  judgeChange,
  updateOrganization,
} from './service.ts'
import { countOrganizations, listOrganizations } from './store.ts'

const list = (context: Context, { search, ...query }: ListOrganizations) =>
  answerPage(context, {
    name: 'organizations',
    query: { ...query, search },
    scope: '',
    fetch: (after, limit) =>
      context.store.read(q => listOrganizations(q, search, { order: query.order, after, limit })),
    total: () =>
      context.store.read(q => (search ? countOrganizations(q, search) : countAll(q, 'organizations'))),
    keyset: organization => [organization.created_at, organization.id],
    item: organizationItem,
  })

/** Returns the admin routes of organizations. */
export const organizationRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'createOrganization',
    method: 'POST',
    path: '/organizations',
    permission: 'organizations:create',
    instance_only: true,
    summary: 'Create an organization, with the roles admin and user',
    body: CreateOrganization,
    status: 201,
    answer: OrganizationAnswer,
    errors: [409],
    review: async (_q, _input, { settings = {} }) => takeAssets(DEFAULT_ORGANIZATION, {}, settings),
    handle: async input => organizationAnswer(await createOrganization(context, input.body, input)),
  }),
  route({
    id: 'listOrganizations',
    method: 'GET',
    path: '/organizations',
    permission: 'organizations:read',
    instance_only: true,
    summary: 'List organizations',
    query: ListOrganizations,
    status: 200,
    answer: OrganizationList,
    handle: ({ query }) => list(context, query),
  }),
  route({
    id: 'getOrganization',
    method: 'GET',
    path: '/organizations/:org_id',
    permission: 'organizations:read',
    summary: 'Get an organization by id or slug',
    status: 200,
    answer: OrganizationAnswer,
    errors: [404],
    read: async (q, { caller, params }) =>
      organizationAnswer(await getOrganization(q, caller, params.org_id)),
  }),
  route({
    id: 'updateOrganization',
    method: 'PUT',
    path: '/organizations/:org_id',
    permission: 'organizations:update',
    summary: 'Change the given fields of an organization; other settings stay, and null resets a setting',
    body: UpdateOrganization,
    status: 200,
    answer: OrganizationAnswer,
    errors: [404, 409],
    review: (q, input, good) => judgeChange(context, q, input.params.org_id, good, input),
    handle: async input =>
      organizationAnswer(await updateOrganization(context, input.params.org_id, input.body, input)),
  }),
  route({
    id: 'previewLooks',
    method: 'POST',
    path: '/organizations/:org_id/preview',
    permission: 'organizations:update',
    summary: 'Seal an unsaved appearance for a preview in the console',
    body: PreviewLooks,
    status: 200,
    answer: LooksPreview,
    errors: [404],
    review: async (q, { caller, params }, { settings = {} }) => {
      const organization = await getOrganization(q, caller, params.org_id)
      return takeAssets(organization.id, organization.settings, settings)
    },
    handle: async ({ caller, params, body }) => {
      const organization = await context.store.read(async q => {
        await caller.confirm(q)
        return getOrganization(q, caller, params.org_id)
      })
      return { looks: sealLooks(context, organization, body) }
    },
  }),
  route({
    id: 'deleteOrganization',
    method: 'DELETE',
    path: '/organizations/:org_id',
    permission: 'organizations:delete',
    fresh: true,
    instance_only: true,
    summary: 'Delete an organization with its users, roles, groups, clients, sessions and events',
    status: 204,
    errors: [404, 409],
    handle: input => deleteOrganization(context, input.params.org_id, input),
  }),
]
