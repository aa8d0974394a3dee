#!/bin/bash
git status
make train TP=4
echo done
