#!/usr/bin/env node
// Stands in for the program in tests of the lines that a race speaks with it: PEER names what happens.
import { once } from 'node:events'
import net from 'node:net'
import readline from 'node:readline'

const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`)
const answers = new Map()
const input = readline.createInterface({ input: process.stdin })
input.on('line', (line) => {
  const message = JSON.parse(line)
  answers.get(message.run)?.(message)
})
input.on('close', () => process.exit(7))

// One address, at which each command is answered with OK until `hold` says otherwise.
const sockets = new Set()
const commands = []
let onCommand = () => true
const server = net.createServer((socket) => {
  sockets.add(socket)
  socket.on('error', () => {})
  socket.on('close', () => sockets.delete(socket))
  socket.on('data', (bytes) => {
    commands.push(bytes.toString().trim())
    if (onCommand(socket)) socket.write('+OK\r\n')
  })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `redis://127.0.0.1:${server.address().port}`

let runs = 0
function run(role) {
  runs += 1
  const answer = new Promise((resolve) => answers.set(runs, resolve))
  say({ do: 'run', role, run: runs, url })
  return answer
}

function finish(findings = [], more = {}) {
  const report = { format: 1, findings, arguments: process.argv.slice(2), commands, ...more }
  process.stdout.write(`${JSON.stringify({ do: 'report', report, text: `report with ${findings.length} findings` })}\n`, () => process.exit(findings.length > 0 ? 1 : 0))
}

const scenarios = {
  async clean() {
    const roles = process.argv[4].split(',').map((role) => role.split('=')[0])
    const has = (role) => roles.includes(role)
    const answers = []
    if (has('setup')) answers.push(await run('setup'))
    answers.push(...(await Promise.all(['a', 'b'].filter(has).map(run))))
    if (has('after')) answers.push(await run('after'))
    finish([], { answers })
  },

  async one() {
    finish([], { answers: [await run('a')] })
  },

  async finding() {
    const answers = [await run('a'), await run('b')]
    finish([{ kind: 'isolation', schedule: 'isolation:a2' }], { answers })
  },

  // A dies at its second command, and is run again at the same address.
  async crash() {
    const dead = new Promise((resolve) => {
      onCommand = () => {
        if (commands.length === 2) resolve()
        return commands.length < 2
      }
    })
    const first = run('a')
    await dead
    for (const socket of sockets) socket.destroy()
    const began = Date.now()
    say({ do: 'stop', role: 'a', run: runs })
    const answers = [await first]
    const milliseconds = Date.now() - began
    commands.push('again')
    onCommand = () => true
    answers.push(await run('a'))
    // Time for a client of the first run to come back.
    await new Promise((resolve) => setTimeout(resolve, 400))
    finish([], { answers, milliseconds })
  },

  // The answer to a run and the request to stop it meet on their way.
  async crossed() {
    const answer = await run('a')
    say({ do: 'stop', role: 'a', run: runs })
    finish([], { answers: [answer, await run('a')] })
  },

  usage() {
    process.stderr.write('fakeserver: there is no kind `isolatoin`\n', () => process.exit(2))
  },

  async unusable() {
    await run('setup')
    process.stderr.write('fakeserver: setup failed\n', () => process.exit(2))
  },

  async killed() {
    await run('a')
    process.kill(process.pid, 'SIGKILL')
  },

  async silent() {
    await run('a')
  },

  garbage() {
    process.stdout.write('this is no JSON\n')
  },
}

await scenarios[process.env.PEER]()
