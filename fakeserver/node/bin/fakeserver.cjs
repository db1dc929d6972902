#!/usr/bin/env node
'use strict'
// The program under its own name: `npx fakeserver sweep ...`.
const { spawn } = require('node:child_process')
const { constants } = require('node:os')
const { programPath } = require('../lib/program.cjs')

// A usage error's status, which is also the program's own.
const CANNOT_RUN = 2

function main() {
  let program
  try {
    program = programPath()
  } catch (error) {
    console.error(`fakeserver: ${error.message}`)
    process.exitCode = CANNOT_RUN
    return
  }
  const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' })
  // A terminal tells the whole group, a supervisor this process alone.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => {
    console.error(`fakeserver: ${error.message}`)
    process.exitCode = CANNOT_RUN
  })
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0)
  })
}

main()
