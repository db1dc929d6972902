'use strict'
// The options of a race as the program's arguments.

const ROLES = ['setup', 'a', 'b', 'after']

// How each option that is no function becomes arguments.
const FLAGS = {
  only: (kinds) => ['--only', list(kinds).join(',')],
  compare: (how) => ['--compare', how],
  compareOutput: (yes) => ['--output', yes ? 'compare' : 'ignore'],
  ignore: (patterns) => list(patterns).flatMap((pattern) => ['--ignore', pattern]),
  ignoreFields: (patterns) => list(patterns).flatMap((pattern) => ['--ignore-field', pattern]),
  healsWithin: (milliseconds) => ['--heals-within', String(milliseconds / 1000)],
  timeLimit: (milliseconds) => ['--time-limit', String(milliseconds / 1000)],
  patience: (milliseconds) => ['--patience', String(milliseconds)],
  seed: (seed) => ['--seed', String(seed)],
  clock: (milliseconds) => ['--clock', String(Number(milliseconds))],
  replay: (schedule) => ['--replay', schedule],
  confirm: (url) => ['--confirm', url],
  json: (file) => ['--json', file],
  html: (file) => ['--html', file],
}
const HERE = ['setup', 'after', 'check', 'signal']

function list(value) {
  return Array.isArray(value) ? value : [value]
}

// Splits what `race` was given into the functions by role, and the program's arguments.
function understood(a, b, options) {
  if (b !== null && b !== undefined && typeof b !== 'function') {
    if (options !== undefined) throw new TypeError('race: the second program must be a function')
    return understood(a, undefined, b)
  }
  if (typeof a !== 'function') throw new TypeError('race: the first program must be a function that takes a URL')
  const { setup, after, check = true, signal, ...rest } = options ?? {}
  const roles = new Map()
  for (const [at, role] of [setup, a, b, after].entries()) {
    if (typeof role === 'function') roles.set(ROLES[at], role)
    else if (role !== undefined && role !== null) throw new TypeError(`race: \`${ROLES[at]}\` must be a function that takes a URL`)
  }
  const args = ['sweep', '--host', [...roles].map(named).join(',')]
  // Then every schedule has a twin with the roles exchanged, which need not be run.
  if (a === b) args.push('--same')
  for (const [name, value] of Object.entries(rest)) {
    const flag = Object.hasOwn(FLAGS, name) ? FLAGS[name] : null
    if (!flag) throw new TypeError(`race: there is no option \`${name}\`, but ${[...HERE, ...Object.keys(FLAGS)].join(', ')}`)
    if (value !== undefined && value !== null) args.push(...flag(value))
  }
  return { roles, args, check, signal }
}

// A role, and by what name its function stands in reports. One that was written in its place has none, or the role's.
function named([role, { name }]) {
  return /^[\w$]+$/.test(name) && name !== role ? `${role}=${name}` : role
}

module.exports = { understood }
